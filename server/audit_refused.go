package server

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// refusalsEach bounds the refusals in a second that have an entry each. The others are counted in one entry.
const refusalsEach = 10

// refusals are the entries of refused requests that are not written yet. They are written beside the requests, so
// that a refusal waits for no disk. The mutex guards all fields.
type refusals struct {
	mu      sync.Mutex
	began   time.Time // the second that is counted
	entries int       // in this second
	queue   []auditEntry
	counted int  // beyond refusalsEach
	writing bool // a goroutine writes them
}

// add takes an entry, and reports whether the caller must begin to write.
func (r *refusals) add(e auditEntry, now time.Time) (begin bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.began) >= time.Second {
		r.began, r.entries = now, 0
	}
	if r.entries++; r.entries > refusalsEach || len(r.queue) >= 10*refusalsEach { // the disk may be slow
		r.counted++
	} else {
		r.queue = append(r.queue, e)
	}
	begin, r.writing = !r.writing, true
	return begin
}

// take returns the entries to write now, how many others were counted, and for how long to wait until their number can be
// written. It ends the writing if there is nothing of all that.
func (r *refusals) take(now time.Time, ending bool) (queue []auditEntry, counted int, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue, r.queue = r.queue, nil
	if len(queue) > 0 {
		return queue, 0, 0
	}
	if wait = time.Second - now.Sub(r.began); r.counted > 0 && wait > 0 && !ending {
		return nil, 0, wait
	}
	counted, r.counted = r.counted, 0
	r.writing = counted > 0
	return nil, counted, 0
}

// isRefusal reports whether a problem refuses a principal, or one that does not say which it is. A request
// without credentials is none: browsers make it before they sign in.
func (p *problem) isRefusal() bool {
	return p.refuses || p.Status == http.StatusForbidden || p.Type == "bad-credentials" || p.Type == "too-many-tries"
}

// refuses returns the same problem, as one that tells of a right that is missing.
func refuses(p *problem) *problem {
	p.refuses = true
	return p
}

// noteRefusal notes the error of a request if it is a refusal.
func (x *exchange) noteRefusal(err error) {
	p := problemOf(err)
	if !p.isRefusal() {
		return
	}
	e := x.by(auditEntry{Verb: "refused", Outcome: string(none), Problem: p.Type, Route: x.r.Method + " " + x.pattern()})
	if x.route != nil {
		named := func(parts ...string) string {
			text := ""
			for _, part := range parts {
				text = cmp.Or(text, x.path(part))
				if x.route.param(part) != nil {
					text = cmp.Or(text, x.r.URL.Query().Get(part))
				}
			}
			return strings.ToValidUTF8(text[:min(len(text), maxAuditText)], "")
		}
		e.Class, e.Object, e.Part = named("class", "job", "pool"), named("name", "id"), named("task", "seq", "verb", "method", "view")
	}
	if x.refusals.add(e, x.host.Seams().Steady()) {
		x.spawn(x.writeRefusals)
	}
}

// writeRefusals writes entries until there is none. One that cannot be written is a line of the log.
func (s *Server) writeRefusals() {
	for {
		queue, counted, wait := s.refusals.take(s.host.Seams().Steady(), s.serving.ending.Err() != nil)
		switch {
		case wait > 0:
			ctx, cancel := s.untilEnd(context.Background(), wait)
			<-ctx.Done()
			cancel()
			continue
		case counted > 0:
			queue = []auditEntry{{Verb: "refused", Outcome: string(none), Count: counted}}
		case len(queue) == 0:
			return
		}
		for _, e := range queue {
			if err := s.writeAudit(context.Background(), today(s.host), auditEvent{auditNoted, e}); err != nil {
				s.config.Logger.Error("server: audit: a refusal cannot be written", slog.String("who", e.Who), slog.String("route", e.Route), slog.Any("error", err))
			}
		}
	}
}
