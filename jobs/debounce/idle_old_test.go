package debounce_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/seam"
)

type rows struct{ st *object.State }

// older writes the rows of a debounce object as versions did that never ended one: a
// buffer without the field at its end, and no alarm.
var (
	older = object.Define("hooks", func(_ context.Context, st *object.State) (*rows, error) { return &rows{st}, nil })
	write = object.Handle(older, "write", func(r *rows, ctx context.Context, updated time.Time) (int, error) {
		buffer := []byte{1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0} // generation 2 is open and empty, one event was flushed
		return 0, errors.Join(
			r.st.Storage().PutBytes(ctx, "b", buffer),
			r.st.Storage().Put(ctx, jobs.MetaKey, jobs.Meta{
				Type: "debounce", Name: "hooks", ID: name, CreationID: "1-00000000", Status: jobs.Running,
				CreatedAt: updated, UpdatedAt: updated, RunCount: 1,
			}),
		)
	})
)

// written opens a host on a store with the idle object of an older version, which was
// changed last at the given time.
func written(s *harness.Sim, c config, updated time.Time) *book {
	s.Host(older)
	s.Must(write.Call(s.Context(), s, name, updated))
	b := bookOf(s, c)
	s.Restart(harness.WithCode(b.job))
	return b
}

// Proves D6: an idle object of an older version has no alarm. Its activation, and a
// scrub, arm it for its dedup time after its last change, and no report tells of it.
func TestIdleObjectOfAnOlderVersion(t *testing.T) {
	for what, wake := range map[string]func(*harness.Sim, *book) error{
		"called": func(_ *harness.Sim, b *book) error { _, err := b.status(); return err },
		"scrubbed": func(s *harness.Sim, b *book) error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				seen, err := recovery.Scrub(ctx, h, recovery.ScrubOptions{Repair: true})
				if len(seen.Findings) != 1 || !seen.Findings[0].Repaired {
					s.Errorf("R6: the scrub has seen %+v", seen)
				}
				return err
			})
		},
	} {
		t.Run(what, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				updated := s.Now()
				b := written(s, config{Quiet: seconds(5), Dedup: time.Hour}, updated)
				s.Advance(time.Minute)
				if at := b.alarm(); !at.IsZero() {
					s.Errorf("the older object has an alarm at %v", at)
				}
				s.OK(wake(s, b))
				s.OK(s.WithHost(func(_ context.Context, h *object.Host) error {
					if told, total := h.Recoveries(); total > 0 {
						s.Errorf("R3: the report tells of an idle object: %+v", told)
					}
					return nil
				}))
				if at := b.alarm(); !at.Equal(updated.Add(time.Hour)) {
					s.Errorf("D6: the alarm is at %v", at)
				}
				b.goesAt(updated.Add(time.Hour))
			})
		})
	}
}

// Proves D6: an object of an older version that has been idle for longer than its dedup
// time ends as soon as it is activated.
func TestIdleObjectOfLongAgo(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		b := written(s, config{Quiet: seconds(5), Dedup: time.Hour}, s.Now().Add(-30*24*time.Hour))
		_, err := b.status()
		s.OK(err)
		s.RunUntilIdle()
		if b.exists() {
			s.Errorf("D6: the object is there")
		}
	}, checks...)
}

// redefined opens the host again with another dedup time.
func (b *book) redefined(c config) *book {
	again := bookOf(b.s, c)
	again.acked, again.flushed = b.acked, b.flushed
	b.s.Restart(harness.WithCode(again.job))
	return again
}

// Proves D6 and C5: a definition that remembers ids for less time lets an object end
// earlier, but not while it knows an id that an earlier one promised to remember.
func TestShorterDedup(t *testing.T) {
	long := config{Quiet: seconds(5), MaxEvents: 1, Dedup: time.Hour}
	short := config{Quiet: seconds(5), MaxEvents: 1, Dedup: time.Minute}
	harness.Run(t, func(s *harness.Sim) {
		b := newBook(s, long)
		first, end := b.add("a"), s.Now().Add(time.Hour)
		b = b.redefined(short)
		_, err := b.status()
		s.OK(err)
		s.Advance(2 * time.Minute)
		if at := b.purgeAt(); !at.Equal(end) || !b.alarm().Equal(end) {
			s.Errorf("D6: the object goes at %v, its alarm is at %v, want %v", at, b.alarm(), end)
		}
		b.until(end.Add(-1))
		if again := b.add("a"); again != first {
			s.Errorf("D2: a repeat within the time of then: %+v, want %+v", again, first)
		}
		b.goesAt(end)
	}, checks...)
	harness.Run(t, func(s *harness.Sim) { // an event without an id
		b := newBook(s, long)
		_, err := b.job.Add(s.Context(), s, name, event{ID: "a"})
		s.OK(err)
		end := s.Now().Add(time.Minute)
		b = b.redefined(short)
		_, err = b.status()
		s.OK(err)
		b.goesAt(end)
	}, checks...)
}

// Proves D6: with a dedup time longer than any alarm an object stays, and costs nothing.
func TestLongestDedup(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		b := newBook(s, config{Quiet: seconds(5), MaxEvents: 1, Dedup: 1<<63 - 1})
		b.add("a")
		s.Advance(100 * time.Hour)
		at := b.purgeAt()
		if !b.exists() || !at.Equal(b.alarm()) || at.Year() != 2262 {
			s.Errorf("D6: the object exists: %t; it goes at %v, its alarm is at %v", b.exists(), at, b.alarm())
		}
	}, checks...)
}

// Proves D3: the keys of two lives of one opening differ, even if the host draws equal
// random numbers, and the events come at one time.
func TestKeysOfLivesDiffer(t *testing.T) {
	var keys []string
	flushed := make(chan string)
	job := debounce.New(config{Name: "hooks", Quiet: time.Hour, MaxEvents: 1, Flush: func(_ context.Context, f *flush) error {
		flushed <- f.Key
		return nil
	}})
	o := object.Options{Dir: t.TempDir()}
	o.Seams.Rand, o.Seams.Clock = sameNumber{}, stopped{seam.Seams{}.WithDefaults().Clock}
	h, err := object.Open(o, job)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, h)
	ctx := context.Background()
	for range 2 {
		if _, err := job.Add(ctx, h, name, event{ID: "a"}); err != nil {
			t.Fatal(err)
		}
		key := <-flushed
		if slices.Contains(keys, key) {
			t.Errorf("D3: two lives have the key %s", key)
		}
		keys = append(keys, key)
		if err := job.Terminate(ctx, h, name, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// sameNumber draws one number again and again.
type sameNumber struct{}

func (sameNumber) Uint64() uint64 { return 7 }

// stopped is a clock that shows one time. Its timers run.
type stopped struct{ seam.Clock }

func (stopped) Now() time.Time { return time.Unix(1e9, 0) }

// Proves D6: an object with more ids than one look reads ends no earlier than another,
// and at most a quarter of its dedup time later.
func TestIdleObjectWithManyIDs(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		b := newBook(s, config{Quiet: seconds(5), Dedup: time.Hour})
		for i := range 1100 {
			b.add(fmt.Sprint(i))
		}
		s.Advance(seconds(5))
		end := s.Now().Add(time.Hour)
		b.until(end.Add(-1))
		if !b.exists() {
			s.Errorf("D6: the object is gone before its dedup time is over")
		}
		s.Advance(1)
		if at := b.purgeAt(); !at.After(end) || at.After(end.Add(time.Hour/4)) {
			s.Errorf("D6: the object goes at %v, which is not within a quarter of an hour after %v", at, end)
		}
		b.goesAt(b.purgeAt())
	}, checks...)
}
