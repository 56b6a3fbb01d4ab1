package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/webhook"
	"github.com/holdfast-dev/holdfast/storage"
)

// eventStream stands for an answer as text/event-stream: its frames are snapshot, event (with a
// streamed), reset and bye.
type eventStream struct{}

// eventRoutes are the routes of streams of events, as text/event-stream.
func (s *Server) eventRoutes() []route {
	kind := param{name: "kind", help: "only events of this kind, or of these, with commas between"}
	prefix := param{name: "name", help: "only objects with names that begin with it"}
	after := param{name: "after", help: "the id of the last event that the client has, if the header Last-Event-ID cannot say it"}
	one := param{name: "after", help: after.help + "; 0 begins with the oldest event that is kept"}
	return []route{
		{method: "GET", pattern: "/v1/events", access: viewer, answer: eventStream{}, handle: (*exchange).events,
			params: []param{kind, prefix, after},
			help:   "Stream the events of all objects. Below the role reader they have no data."},
		{method: "GET", pattern: "/v1/events/{class}", access: viewer, answer: eventStream{}, handle: (*exchange).events,
			params: []param{kind, prefix, after},
			help:   "Stream the events of the objects of a class. Below the role reader they have no data."},
		{method: "GET", pattern: "/v1/objects/{class}/{name}/events", access: viewer, single: true, answer: eventStream{}, handle: (*exchange).objectEvents,
			params: []param{kind, one},
			help:   "Stream the events of an object, those that are stored too. Below the role reader they have no data."},
		{method: "GET", pattern: "/v1/object/events", access: viewer, single: true, answer: eventStream{}, handle: (*exchange).objectEvents,
			params: []param{{name: "class", help: "of the object"}, {name: "name", help: "of the object"}, kind, one},
			help:   "Stream the events of an object, those that are stored too. Below the role reader they have no data."},
	}
}

// events streams those of a class, or of all objects. An unknown class has events too, those of
// objects that an earlier program has left, so it is none here but for one of the library.
func (x *exchange) events() error {
	class := x.path("class")
	if _, ok := x.Server.classes[class]; class != "" && (!ok || system(class)) {
		return &problem{Type: "unknown-class", Title: "The host has no such class.", Status: http.StatusNotFound, Outcome: none}
	}
	return x.stream(&stream{of: object.TapOptions{Class: class}, prefix: x.param("name")})
}

// objectEvents streams those of one object.
func (x *exchange) objectEvents() error {
	id, err := x.plain()
	if err != nil {
		return err
	}
	return x.stream(&stream{of: object.TapOptions{Class: id.Class, Name: id.Name}})
}

// stream is one answer that goes on. The goroutine of its request does all of it, also the pings,
// so that nothing writes after its end.
type stream struct {
	*exchange
	control *http.ResponseController
	of      object.TapOptions
	prefix  string   // of the names of objects
	kinds   []string // none: all
	tap     *object.Tap
	frames  bytes.Buffer // that are to be written
	live    *live        // of a stream for pages; nil: of events
	asked   time.Time    // when the principal was last asked for
	wrote   time.Time    // when frames were last written
}

// batchBytes bounds the events that a stream holds while it writes them, but for one that is larger.
const batchBytes = 64 << 10

// stream serves a stream until its client leaves, its principal may not see it any more, or the
// server or the host ends.
func (x *exchange) stream(st *stream) error {
	st.exchange = x
	if kinds := x.param("kind"); kinds != "" {
		st.kinds = strings.Split(kinds, ",")
	}
	given, err := st.after()
	if err != nil {
		return err
	}
	return st.run(given)
}

// run serves the stream. given says that the client has said where it was.
func (st *stream) run(given bool) error {
	x := st.exchange
	if x.r.ContentLength != 0 {
		return badRequest("a stream takes no body, because a body has its time and a stream has none")
	}
	st.control, st.of.BatchBytes = x.control(), batchBytes
	ctx, leave, err := x.streams.enter(x.r.Context(), x.who.ID, x.limits)
	if err != nil {
		return err
	}
	defer leave()
	defer st.close()
	if err := st.begin(ctx, given); err != nil || x.r.Method == http.MethodHead {
		return err
	}
	return st.end(ctx, st.goOn(ctx))
}

// goOn writes frames and waits for events until the stream ends. It waits with little on the stack: the runtime halves a
// stack of which less than a quarter is in use, and 10,000 streams have as many.
func (st *stream) goOn(ctx context.Context) error {
	for {
		if err := st.flush(); err != nil {
			return err
		}
		events, err := st.wait(ctx)
		if err = st.take(ctx, events, err); err != nil {
			return err
		}
	}
}

// close ends the tap, if there is one. Bytes that net/http still writes have their time.
func (st *stream) close() {
	if st.tap != nil {
		st.tap.Close()
	}
	_ = st.deadline()
}

// retryLeast and retryMore are how long a browser waits before it comes back: 2 to 4 s. Each stream
// draws its own time, so that after a restart not all browsers come back at one moment.
const (
	retryLeast = 2 * time.Second
	retryMore  = 2 * time.Second
)

var (
	errStreamClosed = errors.New("server: the server closes")
	errRevoked      = errors.New("server: the principal may not see the stream any more")
	errClientGone   = errors.New("server: the client has gone")
	errClientSlow   = errors.New("server: the client does not read")
)

// after reads where the client was, and reports whether it said so. A browser that comes back
// says it in the header.
func (st *stream) after() (given bool, err error) {
	text := st.r.Header.Get("Last-Event-ID")
	if text == "" {
		text = st.param("after")
	}
	if text == "" {
		return false, nil
	}
	digits, isPlace := strings.CutPrefix(text, "p")
	st.of.After, err = strconv.ParseUint(digits, 10, 64)
	if err != nil || isPlace == st.single() {
		return false, object.ErrBadCursor
	}
	if st.of.After == 0 && isPlace {
		return false, object.ErrBadCursor
	}
	return true, nil
}

// single reports whether the stream is of one object.
func (st *stream) single() bool { return st.of.Name != "" }

// cursor is the id of an event on the wire. It has a letter if it is a place in the order of all
// events, because that is no number of an event of an object.
func (st *stream) cursor(at uint64) string {
	if st.single() {
		return strconv.FormatUint(at, 10)
	}
	return "p" + strconv.FormatUint(at, 10)
}

// begin begins the tap and the answer. It refuses a writer that has no deadlines, because a client
// that does not read would hold the stream for ever.
func (st *stream) begin(ctx context.Context, given bool) error {
	if errors.Is(st.noDeadline(), http.ErrNotSupported) {
		return &problem{Type: "no-streams", Title: "The server cannot stream.", Status: http.StatusInternalServerError, Outcome: none,
			Detail: "a ResponseWriter between net/http and the server has no method Unwrap"}
	}
	more := seam.Uint64n(st.host.Seams().Rand, uint64(retryMore.Milliseconds())+1)
	fmt.Fprintf(&st.frames, "retry: %d\n\n", uint64(retryLeast.Milliseconds())+more)
	begin := st.snapshot
	if given {
		begin = func(context.Context) error { return st.listen() }
	}
	if err := begin(ctx); err != nil {
		return err
	}
	st.asked = time.Now()
	h := st.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	st.w.WriteHeader(http.StatusOK)
	return nil
}

func (st *stream) deadline() error {
	return st.control.SetWriteDeadline(time.Now().Add(st.limits.writeTime))
}

// noDeadline takes the deadline back. That of HTTP/2 would end the stream also while nothing is written.
func (st *stream) noDeadline() error { return st.control.SetWriteDeadline(time.Time{}) }

// flush writes the frames.
func (st *stream) flush() error {
	if st.frames.Len() == 0 {
		return nil
	}
	_ = st.deadline()
	_, err := st.w.Write(st.frames.Bytes())
	if err == nil {
		err = st.control.Flush()
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errClientSlow
	case err != nil:
		return errClientGone
	}
	_ = st.noDeadline()
	st.wrote = time.Now()
	if st.frames.Reset(); st.frames.Cap() > keptFrames {
		st.frames = bytes.Buffer{}
	}
	return nil
}

// keptFrames is how much memory a stream keeps for its next frames.
const keptFrames = 4 << 10

// listen begins the tap at of.After.
func (st *stream) listen() error {
	tap, err := st.host.Tap(st.of)
	if err != nil {
		return err
	}
	if st.tap != nil {
		st.tap.Close()
	}
	st.tap = tap
	return nil
}

// snapshot tells a new client the state, and begins the tap behind it. A client of one object gets the
// events from the newest on that the state has; if there is none, it has no place to come back to yet.
func (st *stream) snapshot(ctx context.Context) error {
	if st.live != nil {
		st.of.After = 0
		return st.listen()
	}
	if !st.single() {
		st.of.After = 0
		if err := st.listen(); err != nil {
			return err
		}
		counts, err := st.counts(ctx)
		if err != nil {
			return err
		}
		return st.frame("snapshot", st.cursor(st.tap.Cursor()), counts)
	}
	in, err := st.inspection(ctx, storage.ID{Class: st.of.Class, Name: st.of.Name})
	if err != nil {
		return err
	}
	id := ""
	if st.of.After = 0; len(in.Events) > 0 {
		st.of.After = in.Events[0].Seq
		id = st.cursor(st.of.After)
	}
	shown, err := st.visible(in)
	if err != nil {
		return err
	}
	if err := st.frame("snapshot", id, shown); err != nil {
		return err
	}
	return st.listen()
}

// labelCounts are how many objects of a class have each label.
type labelCounts struct {
	Class    string         `json:"class"`
	Labels   map[string]int `json:"labels"`
	Complete bool           `json:"complete"` // false for a while after the start: they are being counted
}

// counts are those of the classes of the stream. They are from memory, so it waits for the disk
// afterwards, by a look at an object.
func (st *stream) counts(ctx context.Context) (all []labelCounts, err error) {
	for _, c := range st.host.Classes() {
		if st.of.Class != "" && st.of.Class != c.Name || system(c.Name) {
			continue
		}
		labels, complete := st.host.Labels(c.Name)
		all = append(all, labelCounts{c.Name, labels, complete})
	}
	if len(all) > 0 {
		_, err = st.host.Objects(ctx, all[0].Class, object.ObjectsOptions{Limit: 1})
	}
	return all, err
}

// wait waits for events, or until it is time to ping or to ask for the principal again.
func (st *stream) wait(ctx context.Context) ([]object.TapEvent, error) {
	wait, cancel := context.WithTimeout(ctx, st.patience())
	defer cancel()
	events, err := st.tap.Next(wait)
	if wait.Err() != nil && !errors.Is(err, object.ErrEventsMissed) {
		err = nil
	}
	return events, err
}

// take adds the frames of events, or of what the wait for them has ended with, and those for which it is time.
func (st *stream) take(ctx context.Context, events []object.TapEvent, err error) error {
	switch {
	case errors.Is(err, object.ErrEventsMissed):
		st.dropped("missed")
		if err := st.frame("reset", "", struct{}{}); err != nil {
			return err
		}
		return st.snapshot(ctx)
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	for _, e := range events {
		if err := st.event(e); err != nil {
			return err
		}
	}
	if err := st.tell(); err != nil {
		return err
	}
	return st.look()
}

// look asks for the principal and pings, each if it is time. A ping has the place of the stream,
// which moves on with the events that it leaves out.
func (st *stream) look() error {
	now := time.Now()
	if now.Sub(st.asked) >= st.limits.checkEvery {
		st.asked = now
		if !st.stillMay() {
			return errRevoked
		}
	}
	if st.frames.Len() == 0 && now.Sub(st.wrote) >= st.limits.pingEvery {
		if at := st.tap.Cursor(); at != 0 {
			fmt.Fprintf(&st.frames, "id: %s\n", st.cursor(at))
		}
		st.frames.WriteString(": ping\n\n")
	}
	return nil
}

// stillMay reports whether the principal of the request may still see the stream.
func (st *stream) stillMay() bool {
	return st.exchange.stillMay() && (!st.single() || st.sees(st.of.Name) == nil)
}

// streamed is an event on the wire.
type streamed struct {
	Class string    `json:"class"`
	Name  string    `json:"name"`
	Seq   uint64    `json:"seq"`
	At    time.Time `json:"at"`
	Kind  string    `json:"kind"`
	// Data is the payload if that is JSON, and DataBytes if not. Below reader there is neither.
	Data      json.RawMessage `json:"data,omitempty"`
	DataBytes []byte          `json:"dataBytes,omitempty"`
	SizeBytes int             `json:"sizeBytes"` // of the payload
}

// hides reports whether a stream leaves out the events of a class: those of the library, but for the subscriptions on
// the pages of an admin.
func (st *stream) hides(class string) bool {
	return system(class) && !(st.live != nil && class == webhook.Class && st.audits())
}

// event adds the frame of an event, unless the filters leave it out.
func (st *stream) event(e object.TapEvent) error {
	if st.hides(e.ID.Class) || !strings.HasPrefix(e.ID.Name, st.prefix) || len(st.kinds) > 0 && !slices.Contains(st.kinds, e.Kind) {
		return nil
	}
	if st.live != nil {
		st.live.mark(e.ID)
		return nil
	}
	v := streamed{Class: e.ID.Class, Name: e.ID.Name, Seq: e.Seq, At: e.At, Kind: e.Kind, SizeBytes: len(e.Data)}
	switch {
	case st.who.Role < auth.Reader:
	case json.Valid(e.Data) && utf8.Valid(e.Data):
		v.Data = e.Data
	default:
		v.DataBytes = e.Data
	}
	return st.frame("event", st.cursor(e.Cursor), v)
}

// frame adds one frame. JSON has no line break, so the data is one line.
func (st *stream) frame(event, id string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	if id != "" {
		fmt.Fprintf(&st.frames, "id: %s\n", id)
	}
	fmt.Fprintf(&st.frames, "event: %s\ndata: %s\n\n", event, b)
	return nil
}

// end tells the client why the stream ends, if the client has not left by itself. A stream that
// cannot tell is cut, so that the client comes back.
func (st *stream) end(ctx context.Context, err error) error {
	reason := ""
	switch {
	case errors.Is(err, errRevoked):
		reason = "revoked"
	case errors.Is(err, errStreamClosed), errors.Is(err, object.ErrShutdown), errors.Is(err, object.ErrStorage):
		reason = "closing"
	case errors.Is(err, errClientSlow):
		st.dropped("slow")
		return nil
	case errors.Is(err, errClientGone), ctx.Err() != nil:
		return nil
	default:
		st.dropped("failed")
		return err
	}
	st.dropped(reason)
	st.frames.Reset() // it may have been written in part
	fmt.Fprintf(&st.frames, "event: bye\ndata: {\"reason\":%q}\n\n", reason)
	_ = st.flush()
	return nil
}
