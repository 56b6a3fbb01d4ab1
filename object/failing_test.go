package object_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/failing"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves O13: an operation of the store that fails ends the host, and the call that
// needed it gets the error. That holds for each operation in calls, alarms, works, looks
// from outside and Open. After it nothing is acknowledged, and the next process finds
// each acknowledged write.
func TestEachOperationOfTheStoreFails(t *testing.T) {
	n := 1
	for failed := true; failed && !t.Failed(); n++ {
		bubble(t, func(t *testing.T) {
			d := &dying{t: t, n: n, disk: failing.At(n), acked: map[string]string{}}
			d.live()
			failed = d.disk.Failed()
		})
	}
	if n < 500 {
		t.Errorf("the scenario has only %d operations", n)
	}
}

// dying is a scenario over some processes. The disk fails in one of them.
type dying struct {
	t     *testing.T
	n     int
	disk  *failing.Disk
	f     *fixture
	extra *object.Class[thing]
	doIt  *object.Method[action, any]
	acked map[string]string // by "object/key"
	step  string
	over  bool // the process runs on a disk that does not fail
}

func (d *dying) live() {
	d.f = newFixture(d.t, object.ClassOptions{IdleAfter: time.Second})
	d.extra = object.Define("extra", func(_ context.Context, st *object.State) (*thing, error) {
		return &thing{st: st, fix: d.f}, nil
	})
	d.doIt = object.Handle(d.extra, "do", func(th *thing, ctx context.Context, fn action) (any, error) { return fn(th, ctx) })
	d.f.handleAlarm(d.alarm)
	d.f.handleConstruct(d.construct)
	for _, life := range []func(){d.first, d.second, d.third} {
		if !d.open() {
			break
		}
		life()
		d.f.crash()
		if d.disk.Failed() {
			break
		}
	}
	d.verify()
}

// open opens the next process. It reports whether there is one.
func (d *dying) open() bool {
	o := d.f.options
	o.Storage.Engine, o.Storage.Shards = d.disk.Engine(d.f.mem), 2
	defs := []object.Definition{d.f.class}
	if d.f.host == nil {
		defs = append(defs, d.extra)
	}
	h, err := object.Open(o, defs...)
	if err != nil {
		if !d.disk.Failed() || !errors.Is(err, object.ErrStorage) {
			d.t.Fatalf("%v: Open: %v", d.disk, err)
		}
		d.f.mem = d.f.mem.Crash(0)
		return false
	}
	d.f.host = h
	synctest.Wait()
	d.after("Open", nil)
	return true
}

// after looks at the host after a step: it lives, or the disk has failed and it has
// ended.
func (d *dying) after(step string, err error) {
	d.t.Helper()
	if !d.disk.Failed() {
		if err != nil {
			d.t.Fatalf("%v has not failed yet: %s: %v", d.disk, step, err)
		}
		return
	}
	synctest.Wait()
	select {
	case <-d.f.host.Done():
	default:
		d.t.Fatalf("O13: %v failed by %s, and the host goes on", d.disk, step)
	}
	if err := d.f.host.Err(); !errors.Is(err, object.ErrStorage) || !errors.Is(err, failing.ErrDisk) {
		d.t.Fatalf("O13: %v failed by %s, and the host ended with %v", d.disk, step, err)
	}
}

// do does a step, if the disk has not failed, and reports whether it was acknowledged.
func (d *dying) do(step string, f func() error) bool {
	d.t.Helper()
	if d.disk.Failed() {
		if err := f(); err == nil {
			d.t.Errorf("O13: %v has failed, and %s is acknowledged later", d.disk, step)
		}
		return false
	}
	d.step = step
	err := f()
	failed := d.disk.Failed()
	if failed && !errors.Is(err, object.ErrStorage) && (err != nil || !d.disk.Aside()) {
		d.t.Errorf("O13: %v failed under %s, which says %v", d.disk, step, err)
	}
	d.after(step, err)
	synctest.Wait()
	return !failed
}

// in runs fn in a turn of a thing.
func (d *dying) in(name string, fn func(ctx context.Context, th *thing) error, opts ...object.CallOption) bool {
	d.t.Helper()
	return d.do("the turn of "+name, func() error {
		_, err := d.f.call(name, func(th *thing, ctx context.Context) (any, error) {
			d.begins("the handler of " + name)
			return nil, fn(ctx, th)
		}, opts...)
		return err
	})
}

// begins is called when user code begins. It fails the test if the disk has failed
// before.
func (d *dying) begins(what string) {
	if d.disk.Failed() && !d.disk.Aside() && !d.over && failing.ForCall() {
		d.t.Errorf("O13: %v has failed, and %s begins after it", d.disk, what)
	}
}

// read checks the error of a read in a handler. If the disk has failed in the read, the
// error must say so.
func (d *dying) read(what string, err error) error {
	if !d.over && (d.disk.Mine() && err == nil || d.disk.Failed() && err != nil && !errors.Is(err, object.ErrStorage)) {
		d.t.Errorf("O13: %v failed under %s, in a turn of %s, and it says %v", d.disk, what, d.step, err)
	}
	return err
}

// put stores a value that is to be found later.
func (d *dying) put(name, key, value string) {
	d.t.Helper()
	if d.in(name, func(ctx context.Context, th *thing) error { return th.st.Storage().PutBytes(ctx, key, []byte(value)) }) {
		d.acked[name+"/"+key] = value
	}
}

// first is a process that stores the rows for the later ones.
func (d *dying) first() {
	for i := range 4 {
		d.put("data", fmt.Sprint("k", i), strconv.Itoa(i))
	}
	d.in("data", d.reads)
	d.in("data", d.writes)
	d.keys()
	d.marks()
	d.outside()
	d.do("a parked object", func() error {
		_, err := d.doIt.Call(context.Background(), d.f.host, "p", put("k", "v"))
		return err
	})
	d.do("a parked object with an alarm", func() error {
		_, err := d.doIt.Call(context.Background(), d.f.host, "dead", setAlarm(6*time.Second))
		return err
	})
	for i, name := range []string{"plain", "retried", "dead", "hangs"} {
		d.in(name, func(ctx context.Context, th *thing) error {
			if _, _, err := th.st.Alarm(ctx); d.read("Alarm", err) != nil {
				return err
			}
			if _, err := th.st.Driver().AlarmFailures(ctx); d.read("AlarmFailures", err) != nil {
				return err
			}
			if err := th.st.DeleteAlarm(ctx); d.read("DeleteAlarm", err) != nil {
				return err
			}
			return th.st.SetAlarm(ctx, th.st.Now().Add(time.Duration(i+1)*time.Second)) // no two at a time
		})
	}
	d.in("open", func(ctx context.Context, th *thing) error {
		return th.st.Driver().OpenExecution(ctx, []byte("data"))
	})
	begin := make(chan struct{}) // of the work, so that none of its operations is taken for the turn's
	d.in("worker", func(ctx context.Context, th *thing) error {
		if err := th.st.Storage().PutBytes(ctx, "k", nil); err != nil {
			return err
		}
		return th.st.Go(ctx, "work", func(ctx context.Context) {
			<-begin
			err := th.st.Do(ctx, func(ctx context.Context) error { return th.st.Storage().PutBytes(ctx, "worked", nil) })
			if !d.disk.Failed() && err != nil {
				d.t.Errorf("%v: a work: %v", d.disk, err)
			}
		})
	})
	close(begin)
	if !d.disk.Failed() {
		pass(20 * time.Second) // all alarms have fired, and one hangs
		d.after("the alarms", nil)
	}
}

// second is a process that recovers the work that the first left open.
func (d *dying) second() {
	d.put("data", "second", "2")
	d.do("Wake", func() error { return d.f.host.Wake(context.Background(), d.f.id("data")) })
	var letters []object.DeadLetter
	d.do("DeadLetters", func() error {
		all, err := lettersOf(d.f.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
		if err == nil && len(all) != 2 {
			d.t.Errorf("%v: %d dead letters", d.disk, len(all))
		}
		letters = all
		return err
	})
	for _, letter := range letters {
		if letter.ID.Class == "extra" { // no turn of it can run
			d.do("DiscardDeadLetter", func() error { return d.f.host.DiscardDeadLetter(context.Background(), letter.ID, letter.Seq) })
			continue
		}
		d.do("ReplayDeadLetter", func() error { return d.f.host.ReplayDeadLetter(context.Background(), letter.ID, letter.Seq) })
	}
	d.do("Parked", func() error {
		classes, err := d.f.host.Parked()
		if err == nil && len(classes) != 1 {
			d.t.Errorf("%v: parked are %v", d.disk, classes)
		}
		return err
	})
	d.do("Delete of a parked object", func() error { return d.f.host.Delete(context.Background(), d.extra.ID("p")) })
	d.do("Delete", func() error { return d.f.host.Delete(context.Background(), d.f.id("gone")) })
	if !d.disk.Failed() {
		pass(2 * time.Second)
		d.after("the second life", nil)
	}
}

// third is the life of a process after two that died, which ends in order.
func (d *dying) third() {
	d.put("data", "third", "3")
	if !d.disk.Failed() {
		pass(time.Minute)
		d.after("suspects", nil)
	}
	d.do("a dead letter again", func() error {
		all, err := lettersOf(d.f.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
		if err != nil {
			return err
		}
		return d.f.host.DiscardDeadLetter(context.Background(), all[0].ID, all[0].Seq)
	})
	if !d.disk.Failed() {
		pass(3 * time.Hour) // marks and events have expired
		d.after("the expiry", nil)
	}
	d.do("an object whose marks have gone", func() error {
		in, err := d.f.host.Inspect(context.Background(), d.f.id("marked"))
		if err == nil && in.Exists {
			d.t.Errorf("%v: %+v", d.disk, in)
		}
		return err
	})
	before := d.disk.Failed()
	if err := d.f.host.Shutdown(context.Background()); errors.Is(err, object.ErrStorage) != d.disk.Failed() {
		d.t.Errorf("O13: %v, failed before Shutdown %v, after it %v: it says %v", d.disk, before, d.disk.Failed(), err)
	}
}

// verify opens a process on the durable rows, on a disk that does not fail.
func (d *dying) verify() {
	d.over = true
	d.f.check(d.t)
	d.f.options.Storage.Engine = nil
	h := d.f
	h.mem = h.mem.Crash(0)
	h.open()
	pass(10 * time.Minute)
	for at, want := range d.acked {
		for i := range at {
			if at[i] == '/' {
				if got := h.stored(at[:i], at[i+1:]); got != want {
					d.t.Errorf("O13: %v: the next process finds %q under %s, want %q", d.disk, got, at, want)
				}
			}
		}
	}
	h.close()
}

// alarm fails if the name says so, and counts.
func (d *dying) alarm(th *thing, ctx context.Context, info object.AlarmInfo) error {
	d.begins("the alarm of " + th.st.Name())
	value, _, err := th.st.Storage().Get(ctx, "fired")
	if d.read("Get of an alarm", err) != nil {
		return err
	}
	switch th.st.Name() {
	case "retried":
		if info.Attempt == 1 {
			return errors.New("the first attempt")
		}
	case "dead":
		return object.Permanent(errors.New("never"))
	case "hangs":
		if !d.over && th.st.Driver().Epoch() < 3 {
			<-ctx.Done()
			return ctx.Err()
		}
	}
	return th.st.Storage().PutBytes(ctx, "fired", append(value, '1'))
}

// construct ends the execution that an earlier process has left open.
func (d *dying) construct(ctx context.Context, th *thing) error {
	if th.st.Name() != "open" { // which recovery constructs beside the operations of the step
		d.begins("the constructor of " + th.st.Name())
	}
	if th.st.Name() != "open" || th.st.Driver().Epoch() == 1 {
		return nil
	}
	if err := th.st.Driver().CloseExecution(ctx); err != nil {
		return err
	}
	return th.st.Storage().PutBytes(ctx, "recovered", nil)
}
