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
	// backupAge is how old the newest backup may be before the page tells of it.
	backupAge = 24 * time.Hour
	// shownWorst is how many objects that need attention, and groups of dead letters, the page lists.
	shownWorst = 25
)

// overview is the newest look at the objects and letters that need attention. The mutex guards all fields; it is held
// during a look, so that there is one at a time.
type overview struct {
	mu     sync.Mutex
	at     time.Time // when the look began, by the steady clock; zero: there was none
	newest look
}

// look is the findings of one look.
type look struct {
	reasons why.Overview
	unread  error // of an object that reasons end before
	dead    []dashboard.DeadCount
	letters int  // that dead counts
	more    bool // letters
	damaged bool // a letter behind them cannot be read

	next, executing []dashboard.Due
	open            int // executions
}

// wait lets a request for a part of the page wait until a new look may begin, because it asks for a change that an
// older look does not show. A request for the whole page takes the newest look.
func (o *overview) wait(x *exchange) error {
	o.mu.Lock()
	left := o.at.Add(overviewAge).Sub(x.host.Seams().Steady())
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
	seams := x.host.Seams()
	began := seams.Steady()
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
	seen = look{reasons: reasons, unread: unread, dead: countDead(letters.Letters, seams.Clock.Now()), letters: len(letters.Letters), more: len(letters.Next) > 0, damaged: damaged != nil}
	if err := seen.work(x); err != nil && x.host.Err() == nil {
		return seen, err
	}
	o.newest, o.at = seen, began
	return seen, nil
}

// work reads what runs, and what is due next.
func (l *look) work(x *exchange) (err error) {
	store := x.host.Store()
	if l.next, err = upcoming(store, x.host.Seams().Clock.Now()); err != nil {
		return err
	}
	l.executing, l.open, err = executing(x.r.Context(), store)
	return err
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

// countDead counts letters by class, kind and error as of now, the newest first.
func countDead(letters []object.DeadLetter, now time.Time) []dashboard.DeadCount {
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
		one := dashboard.DeadCount{Count: 1, Newest: d.Died}
		if age := now.Sub(d.Died); age <= time.Hour {
			one.Hour, one.Day = 1, 1
		} else if age <= 24*time.Hour {
			one.Day = 1
		}
		addDead(&counts[i], one)
	}
	slices.SortStableFunc(counts, func(a, b dashboard.DeadCount) int {
		return cmp.Or(b.Newest.Compare(a.Newest), cmp.Compare(b.Count, a.Count))
	})
	return counts
}

// addDead adds the letters of another group to one.
func addDead(to *dashboard.DeadCount, more dashboard.DeadCount) {
	to.Count, to.Hour, to.Day = to.Count+more.Count, to.Hour+more.Hour, to.Day+more.Day
	if more.Newest.After(to.Newest) {
		to.Newest = more.Newest
	}
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
	p.Next, p.Executing, p.Open = seen.next, seen.executing, seen.open
	known, at := x.backups.lastVerified()
	p.NoBackup, p.LastBackup = known && x.host.Seams().Clock.Now().Sub(at) > backupAge, at
	x.recordHistory()
	p.Throughput = x.history.throughput()
	p.Waits, p.WaitsAt = x.history.waits()
	if store.Syncing().IsZero() { // a disk that hangs may not tell
		p.Store.Free, p.Store.Floor, p.Store.Watched = store.FreeSpace()
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
		addDead(&counts[i], d)
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
