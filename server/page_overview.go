package server

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/dashboard"
	"github.com/holdfast-dev/holdfast/storage"
)

// overviewPages are the pages about the whole host.
func (s *Server) overviewPages() []route {
	return []route{
		shows("overview", viewer, (*exchange).overviewPage),
		shows("recoveries", viewer, (*exchange).recoveriesPage, limitParam),
	}
}

const (
	// overviewAge is how long a look at the host is shown, so that many browsers cost one look.
	overviewAge = time.Second
	// shownWorst is how many objects that need attention, and groups of dead letters, the page lists.
	shownWorst = 25
)

// overview is the newest look at what needs attention. The mutex guards all fields; it is held during a look, so that
// there is one at a time.
type overview struct {
	mu     sync.Mutex
	at     time.Time // when the look began; zero: there was none
	newest look
}

// look is what one look has found.
type look struct {
	reasons why.Overview
	unread  error // of an object that reasons end before
	dead    []dashboard.DeadCount
	letters int  // that dead counts
	more    bool // letters
	damaged bool // a letter behind them cannot be read
}

// wait lets a request for a part of the page wait until a new look may begin, because it asks for a change that an
// older look does not show. A request for the whole page takes the newest look.
func (o *overview) wait(x *exchange) error {
	o.mu.Lock()
	left := time.Until(o.at.Add(overviewAge))
	o.mu.Unlock()
	if left <= 0 || x.param("part") == "" {
		return nil
	}
	ctx, cancel := x.untilEnd(x.r.Context(), left)
	defer cancel()
	<-ctx.Done()
	return x.r.Context().Err()
}

// look returns the newest look, or a new one if that is too old. The slices belong to all.
func (o *overview) look(x *exchange) (seen look, err error) {
	if err := o.wait(x); err != nil {
		return seen, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	began := time.Now()
	if began.Sub(o.at) < overviewAge {
		return o.newest, nil
	}
	reasons, unread, err := x.attention()
	if err != nil {
		return seen, err
	}
	letters, damaged, err := x.deadLetters(object.DeadLettersOptions{Limit: object.MaxPage})
	if err != nil && x.host.Err() == nil { // a host that has ended reads no row
		return seen, err
	}
	o.newest, o.at = look{reasons, unread, countDead(letters.Letters), len(letters.Letters), len(letters.Next) > 0, damaged != nil}, began
	return o.newest, nil
}

// attention returns all that is overdue or stuck, as far as there is time to look, and up to an object that cannot be
// read; unread is its error.
func (x *exchange) attention() (all why.Overview, unread, err error) {
	ctx, cancel := context.WithTimeout(x.r.Context(), x.limits.overviewTime)
	defer cancel()
	all, err = why.All(ctx, x.source)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && x.r.Context().Err() == nil:
		all.More, err = true, nil
	case errors.Is(err, storage.ErrCorrupt):
		all.More, unread, err = true, err, nil
	}
	return all, unread, err
}

// countDead counts letters by class, kind and error, the most first.
func countDead(letters []object.DeadLetter) []dashboard.DeadCount {
	at := map[dashboard.DeadCount]int{}
	var counts []dashboard.DeadCount
	for _, d := range letters {
		group := dashboard.DeadCount{Class: d.ID.Class, Kind: d.Kind, Error: d.LastError}
		i, ok := at[group]
		if !ok {
			i = len(counts)
			at[group] = i
			counts = append(counts, group)
		}
		counts[i].Count++
		if d.Died.After(counts[i].Newest) {
			counts[i].Newest = d.Died
		}
	}
	slices.SortStableFunc(counts, func(a, b dashboard.DeadCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Newest.Compare(a.Newest))
	})
	return counts
}

func (x *exchange) overviewPage() error {
	seen, err := x.overview.look(x)
	if err != nil {
		return err
	}
	reasons := seen.reasons
	h, err := x.healthNow()
	if err != nil {
		return err
	}
	store := x.host.Store()
	previous := store.Previous()
	p := dashboard.Overview{
		Program: program(), Recovered: h.Recoveries, Dead: seen.dead, LookedAt: seen.letters, AllDead: !seen.more, Damaged: seen.damaged, More: reasons.More,
		Store: dashboard.Store{
			Epoch: h.Epoch, OpenedAt: store.OpenedAt(), New: previous.Epoch == 0, Crashes: previous.Crashes,
			Failed: h.Failed, NoSpace: h.NoSpace, Closing: h.Closing,
		},
		Reasons: countReasons(reasons.Answers),
	}
	reasons.Answers = reasons.Answers[:min(len(reasons.Answers), shownWorst)]
	if reasons, err = shown(x, reasons); err != nil {
		return err
	}
	p.Host, p.Worst = reasons.Store, reasons.Answers
	if seen.unread != nil {
		p.Unread, p.LastError = true, seen.unread.Error()
	}
	if !x.can(auth.Reader) {
		p.Dead, p.LastError = withoutErrors(seen.dead), ""
	}
	if len(p.Dead) > shownWorst {
		p.Dead, p.MoreDead = p.Dead[:shownWorst], true
	}
	for _, c := range x.classList().Classes {
		if c := x.labelled(dashboard.Class{Name: c.Name}); len(c.Labels) > 0 && !system(c.Name) {
			p.Classes = append(p.Classes, c)
		}
	}
	return x.page(p)
}

// withoutErrors are the counts of dead letters by class and kind alone.
func withoutErrors(dead []dashboard.DeadCount) (counts []dashboard.DeadCount) {
	for _, d := range dead {
		d.Error = ""
		i := slices.IndexFunc(counts, func(c dashboard.DeadCount) bool { return c.Class == d.Class && c.Kind == d.Kind })
		if i < 0 {
			counts = append(counts, d)
			continue
		}
		counts[i].Count += d.Count
		if d.Newest.After(counts[i].Newest) {
			counts[i].Newest = d.Newest
		}
	}
	return counts
}

// countReasons counts answers by code, in the order in which they come.
func countReasons(answers []why.Answer) (counts []dashboard.ReasonCount) {
	for _, a := range answers {
		i := slices.IndexFunc(counts, func(c dashboard.ReasonCount) bool { return c.Code == a.Code })
		if i < 0 {
			i = len(counts)
			counts = append(counts, dashboard.ReasonCount{Code: a.Code, Text: meanings[a.Code]})
		}
		counts[i].Count++
	}
	return counts
}

// meanings are those of the codes of why.
var meanings = func() map[why.Code]string {
	all := map[why.Code]string{}
	for _, c := range why.Codes() {
		all[c.Code] = c.Means
	}
	return all
}()

// program tells of the program from its build.
var program = sync.OnceValue(func() (p dashboard.Program) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return p
	}
	p = dashboard.Program{Path: info.Path, Version: info.Main.Version, Go: info.GoVersion}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			p.Commit = s.Value
		}
	}
	return p
})

func (x *exchange) recoveriesPage() error {
	limit, err := x.limit()
	if err != nil {
		return err
	}
	report := recovery.Recovered(x.host)
	p := dashboard.Recoveries{Total: report.Total, Names: x.can(auth.Reader)}
	for _, g := range grouped(report.Lines) {
		p.Groups = append(p.Groups, dashboard.RecoveryCount(g))
	}
	if p.Names {
		p.Lines = slices.Clone(report.Lines[max(len(report.Lines)-limit, 0):])
		slices.Reverse(p.Lines)
	}
	return x.page(p)
}
