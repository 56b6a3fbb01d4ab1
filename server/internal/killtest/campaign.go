package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// instant is when a life is killed.
type instant struct {
	listening bool          // count from the moment at which it listens, not from its start
	after     time.Duration // from then on
	answers   int           // not zero: after so many answers in this life, and not after a time
}

// figures of a campaign.
type figures struct {
	kills, early               int // early: before the program listened
	calls, answers, repeats    int
	cut                        int // calls without an answer at a kill, over all kills
	events, streams, followers int
}

func (f figures) String() string {
	return fmt.Sprintf("%d kills, %d of them before the program listened; %d calls, %d without an answer at a kill, %d answers, %d repeats; %d events to %d followers over %d streams",
		f.kills, f.early, f.calls, f.cut, f.answers, f.repeats, f.events, f.followers, f.streams)
}

const callerCount = 8

// campaign kills the program over the store in a directory, each time at the next instant, lets the
// clients come to an end in a last life, and compares the record with the store.
func campaign(ctx context.Context, dir string, seed uint64, kills int, next func() instant) (f figures, err error) {
	ctx, cancel := context.WithCancel(ctx)
	r, p, done := newRecord(seed), newPlace(), make(chan struct{})
	var callers, followers sync.WaitGroup
	defer func() {
		cancel()
		callers.Wait()
		followers.Wait()
	}()
	for range callerCount {
		callers.Go(func() { (&caller{r, p, done}).run(ctx) })
	}
	for i := range accountCount {
		for _, leaves := range []bool{false, true} {
			name := map[bool]string{false: "the follower that stays", true: "the follower that leaves"}[leaves]
			feed := r.follows(accountName(i), name)
			random := rand.New(rand.NewPCG(seed, uint64(2+i)))
			followers.Go(func() { (&follower{r, feed, p, leaves, random}).run(ctx) })
		}
	}
	for range kills {
		early, err := oneLife(ctx, dir, r, p, next())
		if err != nil {
			return f, err
		}
		f.kills++
		if early {
			f.early++
		}
		f.cut += r.unanswered()
	}
	ended := make(chan struct{})
	if err := lastLife(ctx, dir, r, p, func() <-chan struct{} {
		close(done)
		go func() { callers.Wait(); close(ended) }()
		return ended
	}); err != nil {
		return f, err
	}
	cancel()
	followers.Wait()
	r.count(&f)
	return f, r.compare(context.WithoutCancel(ctx), dir, f)
}

// oneLife starts the program and kills it at an instant. early says that it did not listen yet.
func oneLife(ctx context.Context, dir string, r *record, p *place, at instant) (early bool, err error) {
	l, err := start(dir)
	if err != nil {
		return false, err
	}
	defer l.stdin.Close()
	listened, err := l.live(ctx, r, p, at)
	p.down()
	err = errors.Join(err, l.kill())
	if err == nil {
		err = r.failed()
	}
	if err != nil {
		return false, fmt.Errorf("%w\nthe program said:\n%s", err, l.said)
	}
	return !listened, nil
}

// live waits until the instant at which the life is to be killed.
func (l *life) live(ctx context.Context, r *record, p *place, at instant) (listened bool, err error) {
	if !at.listening {
		early, cancel := context.WithTimeout(ctx, at.after)
		defer cancel()
		addr, err := l.listening(early)
		if err != nil && early.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil {
			return false, err
		}
		p.up(addr)
		<-early.Done()
		return true, ctx.Err()
	}
	addr, err := l.listening(ctx)
	if err != nil {
		return false, fmt.Errorf("the open: %w", err)
	}
	before := r.answers()
	p.up(addr)
	if at.answers > 0 {
		return true, r.until(ctx, func() bool { return r.answered >= before+at.answers })
	}
	return true, sleep(ctx, at.after)
}

// lastLife starts the program, lets the callers end, waits for the followers, and ends it in order.
func lastLife(ctx context.Context, dir string, r *record, p *place, endCallers func() <-chan struct{}) error {
	l, err := start(dir)
	if err != nil {
		return err
	}
	defer l.stdin.Close()
	addr, err := l.listening(ctx)
	if err == nil {
		p.up(addr)
		select {
		case <-endCallers():
			err = r.until(ctx, r.followed)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	p.down()
	if err := errors.Join(err, l.end()); err != nil {
		return fmt.Errorf("%w\nthe program said:\n%s", err, l.said)
	}
	return nil
}

// until waits until a condition of the record is true, or a client has seen something strange.
func (r *record) until(ctx context.Context, is func() bool) error {
	for {
		r.mu.Lock()
		over, grown := is() || len(r.odd) > 0, r.grown
		r.mu.Unlock()
		if over {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// followed reports whether each follower has seen the last event of its account, whether or not it lacks one before, which
// the judge tells. All operations have an answer, and the mutex is held.
func (r *record) followed() bool {
	last := map[string]int{}
	for _, o := range r.all {
		if o.first != nil {
			last[o.account] = max(last[o.account], o.first.Total)
		}
	}
	for _, f := range r.feeds {
		if seen := len(f.events); last[f.account] > 0 && (seen == 0 || f.events[seen-1].Total < last[f.account]) {
			return false
		}
	}
	return true
}

// answers returns how many answers have come.
func (r *record) answers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answered
}

// failed returns the error of a client that has seen something strange.
func (r *record) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.odd) == 0 {
		return nil
	}
	return errors.New(strings.Join(r.odd, "\n"))
}

// count adds the figures of the clients.
func (r *record) count(f *figures) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.calls, f.answers, f.repeats, f.followers = len(r.all), r.answered, r.repeats, len(r.feeds)
	for _, feed := range r.feeds {
		f.events += len(feed.events)
		f.streams += feed.came
	}
}

// compare opens the store, without the server, and judges the record by it. A campaign whose kills
// met no call and no stream is an error too, because it has shown nothing.
func (r *record) compare(ctx context.Context, dir string, f figures) error {
	store, err := readStore(ctx, dir)
	if err != nil {
		return err
	}
	list := r.judge(store)
	if f.cut == 0 {
		list = append(list, "no kill left a call without an answer")
	}
	if f.streams <= f.followers {
		list = append(list, "no stream was resumed")
	}
	if len(list) > 0 {
		return errors.New(strings.Join(list, "\n"))
	}
	return nil
}

// readStore reads all accounts.
func readStore(ctx context.Context, dir string) (_ map[string]stored, err error) {
	host, err := object.Open(object.Options{Dir: dir}, accounts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, host.Shutdown(ctx)) }()
	all := map[string]stored{}
	for i := range accountCount {
		if all[accountName(i)], err = readAccount(ctx, host, accountName(i)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func readAccount(ctx context.Context, host *object.Host, name string) (s stored, err error) {
	id := storage.ID{Class: accounts.Name(), Name: name}
	s.times = map[string]int{}
	for start := ""; ; {
		page, err := host.Keys(ctx, id, object.KeysOptions{Start: start, Limit: object.MaxPage, MaxBytes: object.MaxPageBytes, Values: true})
		if err != nil {
			return s, err
		}
		for _, k := range page.Keys {
			var n int
			if err := json.Unmarshal(k.Value, &n); err != nil {
				return s, fmt.Errorf("the key %s: %w", k.Key, err)
			}
			if key, ok := strings.CutPrefix(k.Key, timesPrefix); ok {
				s.times[key] = n
			} else {
				s.total = n
			}
		}
		if start = page.Next; start == "" {
			break
		}
	}
	for after := uint64(0); ; {
		page, err := host.Events(ctx, id, after, object.MaxPage)
		if err != nil || len(page) == 0 {
			return s, err
		}
		for _, e := range page {
			var c change
			if err := json.Unmarshal(e.Data, &c); err != nil {
				return s, fmt.Errorf("event %d: %w", e.Seq, err)
			}
			s.events = append(s.events, event{e.Seq, c})
		}
		after = page[len(page)-1].Seq
	}
}
