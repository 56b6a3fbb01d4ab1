package realtime

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/fulldisk"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// openOn opens a host on a disk that may be full.
func openOn(d *fulldisk.FS, defs ...object.Definition) (*object.Host, error) {
	return object.Open(object.Options{
		Dir: "store", Logger: slog.New(slog.DiscardHandler),
		Storage: storage.Options{Shards: 4, Pebble: pebblestore.Options{FS: d, CacheBytes: 1 << 20, NoCompactions: true}},
	}, defs...)
}

// jar is an object that writes in its constructor, calls and alarms.
type jar struct {
	st  *object.State
	lab *spaceLab
}

func (j *jar) Alarm(ctx context.Context, info object.AlarmInfo) error {
	if err := j.st.Storage().Put(ctx, "fired", info.Attempt); err != nil {
		return err
	}
	j.lab.fired = append(j.lab.fired, info.Attempt)
	return nil
}

// spaceLab is a host on a disk that can be full.
type spaceLab struct {
	t     *testing.T
	disk  *fulldisk.FS
	host  *object.Host
	fired []int // the attempt of each alarm that was handled

	jars  *object.Class[jar]
	fill  *object.Method[int, int]
	ring  *object.Method[time.Duration, int]
	peek  *object.Method[int, int]
	ticks *continuous.Job[int] // one short run each 10 s
	long  *continuous.Job[int] // one long run

	takes time.Duration // a run of long
	watch stopwatch     // of the executions of long
	runs  []uint64      // the number of the run of each
}

func newSpaceLab(t *testing.T) *spaceLab {
	l := &spaceLab{t: t, disk: fulldisk.New(), takes: time.Minute}
	l.jars = object.Define("jar", func(ctx context.Context, st *object.State) (*jar, error) {
		return &jar{st, l}, st.Storage().Put(ctx, "constructed", true)
	})
	l.fill = object.Handle(l.jars, "fill", func(j *jar, ctx context.Context, n int) (int, error) {
		return 0, j.st.Storage().PutBytes(ctx, "bytes", make([]byte, n))
	})
	l.ring = object.Handle(l.jars, "ring", func(j *jar, ctx context.Context, d time.Duration) (int, error) {
		return 0, j.st.SetAlarm(ctx, j.st.Now().Add(d))
	})
	l.peek = object.Handle(l.jars, "peek", func(j *jar, ctx context.Context, _ int) (int, error) {
		b, _, err := j.st.Storage().Get(ctx, "bytes")
		return len(b), err
	})
	l.ticks = continuous.New(continuous.Config[int]{
		Name: "ticks", Schedule: jobs.Every(10 * time.Second),
		Run: func(_ context.Context, r *continuous.Run[int]) error { r.State++; return nil },
	})
	l.long = continuous.New(continuous.Config[int]{
		Name: "long",
		Run: func(ctx context.Context, r *continuous.Run[int]) error {
			l.watch.lap()
			l.runs = append(l.runs, r.Number)
			select {
			case <-time.After(l.takes):
				r.State++
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	})
	l.open()
	t.Cleanup(func() { _ = l.host.Shutdown(ended()) }) // else a test that fails would hang
	return l
}

func (l *spaceLab) open() {
	l.t.Helper()
	h, err := openOn(l.disk, l.jars, l.ticks, l.long)
	l.ok(err)
	l.host = h
}

func (l *spaceLab) ok(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// use begins the jobs, and sets an alarm.
func (l *spaceLab) use() {
	l.t.Helper()
	l.watch.began = time.Now()
	_, err := l.ticks.Start(l.t.Context(), l.host, "it", 0)
	l.ok(err)
	_, err = l.long.Start(l.t.Context(), l.host, "it", 0)
	l.ok(err)
	_, err = l.ring.Call(l.t.Context(), l.host, "bell", 15*time.Second)
	l.ok(err)
	synctest.Wait()
}

// fillUp fills the disk, and writes until the store has seen it.
func (l *spaceLab) fillUp() {
	l.t.Helper()
	l.disk.SetFull(true)
	for range 10 {
		if _, err := l.fill.Call(l.t.Context(), l.host, "big", 1<<20); l.refused(err) {
			return
		}
	}
	l.t.Fatal("a full disk refuses nothing")
}

// refused reports whether a call was refused for want of space, as it has to be.
func (l *spaceLab) refused(err error) bool {
	l.t.Helper()
	if err != nil && (!errors.Is(err, object.ErrNoSpace) || !object.Retryable(err) || errors.Is(err, object.ErrStorage)) {
		l.t.Errorf("on a full disk: %v", err)
	}
	return err != nil
}

// done is how many runs of the jobs are stored.
func (l *spaceLab) done() (ticks, long uint64) {
	l.t.Helper()
	a, err := l.ticks.Status(l.t.Context(), l.host, "it")
	l.ok(err)
	b, err := l.long.Status(l.t.Context(), l.host, "it")
	l.ok(err)
	return a.Meta.RunCount, b.Meta.RunCount
}

// A full disk refuses turns that write and nothing else. When space is back, calls are
// taken at once, work that waited goes on within a second, and an interrupted run is
// repeated. Proves O17.
func TestFullDiskThatBecomesFreeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSpaceLab(t)
		l.use()
		l.fillUp()
		ticks, _ := l.done()
		for _, name := range []string{"big", "new"} { // one that was there, and one with a constructor that writes
			for range 20 {
				time.Sleep(15 * time.Second)
				if _, err := l.fill.Call(t.Context(), l.host, name, 1); !l.refused(err) {
					t.Errorf("%s: written on a full disk", name)
				}
			}
		}
		if now, long := l.done(); len(l.fired) != 0 || now != ticks || long != 0 {
			t.Errorf("on a full disk: alarms %v, runs %d to %d and %d", l.fired, ticks, now, long)
		}
		if err := l.host.Err(); err != nil {
			t.Error(err)
		}
		l.disk.SetFull(false)
		_, err := l.fill.Call(t.Context(), l.host, "new", 7)
		l.ok(err)
		time.Sleep(time.Second)
		synctest.Wait()
		if now, _ := l.done(); now != ticks+1 || len(l.fired) != 1 || l.fired[0] != 1 {
			t.Errorf("a second after space came back: runs %d to %d, alarms %v", ticks, now, l.fired)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, long := l.done(); long != 1 || !slices.Equal(l.runs, []uint64{1, 1}) {
			t.Errorf("the run that was cut off: done %d, executions of runs %v", long, l.runs)
		}
		l.ok(l.host.Shutdown(t.Context()))
	})
}

// If the end of a run cannot be stored, the run counts as lost. It is repeated once there
// is space and it is stale, and that costs no recovery. Proves O17, R2, R4.
func TestEndOfARunOnAFullDisk(t *testing.T) {
	for name, c := range map[string]struct {
		took, full, free time.Duration
		want             time.Duration // when it is run again
	}{
		"stale before there is space": {time.Minute, 55 * time.Second, 65*time.Second + 500*time.Millisecond, 66 * time.Second},
		"stale after it":              {5 * time.Second, 3 * time.Second, 8 * time.Second, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newSpaceLab(t)
				l.takes = c.took
				l.use()
				until(l.watch.began.Add(c.full))
				l.fillUp()
				until(l.watch.began.Add(c.free))
				l.disk.SetFull(false)
				until(l.watch.began.Add(5 * time.Minute))
				if want := []time.Duration{0, c.want}; !slices.Equal(l.watch.laps, want) || !slices.Equal(l.runs, []uint64{1, 1}) {
					t.Errorf("executions of runs %v began at %v, want %v", l.runs, l.watch.laps, want)
				}
				if lines, n := l.host.Recoveries(); n != 1 || lines[0].Attempt != 0 || lines[0].ID != l.long.ID("it") {
					t.Errorf("recovered %+v", lines)
				}
				l.ok(l.host.Shutdown(t.Context()))
			})
		})
	}
}

// A host on a full disk shuts down in order; nothing is opened on it until space is
// back, and then all goes on at no cost. Proves O14, O17.
func TestShutdownOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSpaceLab(t)
		l.use()
		time.Sleep(12 * time.Second) // an alarm of ticks has fired
		l.fillUp()
		time.Sleep(20 * time.Second) // the alarm is due, and refused
		began := time.Now()
		l.ok(l.host.Shutdown(ended())) // it interrupts running work
		if took := time.Since(began); took > time.Second {
			t.Errorf("Shutdown took %v", took)
		}
		if _, err := openOn(l.disk, l.jars); !errors.Is(err, object.ErrNoSpace) {
			t.Errorf("a store is opened on a full disk: %v", err)
		}
		l.disk.SetFull(false)
		l.open()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		st, err := l.long.Status(t.Context(), l.host, "it")
		l.ok(err)
		if st.Meta.RunCount != 1 || st.Meta.RecoveryAttempts != 0 || len(l.fired) != 1 || l.fired[0] != 1 {
			t.Errorf("after the next open: %+v, alarms %v", st.Meta, l.fired)
		}
		l.ok(l.host.Shutdown(t.Context()))
	})
}
