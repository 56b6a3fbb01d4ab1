package object_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Each reason has its name, and any other number is shown as one.
func TestNamesOfReasons(t *testing.T) {
	for r, want := range map[object.Reason]string{
		-1: "reason -1", object.Fresh: "fresh", object.Evicted: "evicted", object.Restarted: "restarted", object.Crashed: "crashed",
		object.Crashed + 1: "reason 4", 127: "reason 127",
	} {
		if got := r.String(); got != want {
			t.Errorf("reason %d is %q, want %q", int(r), got, want)
		}
	}
}

// reasonOf is why the object's constructor runs next.
func (f *fixture) reasonOf(name string) object.Activation {
	f.t.Helper()
	return f.must(name, func(th *thing, _ context.Context) (any, error) { return th.st.Activation(), nil }).(object.Activation)
}

// Proves O5: an object without stored rows is fresh, also if it has been in memory since
// it was activated after a crash.
func TestReasonAfterAPurge(t *testing.T) {
	f := newFixture(t).open()
	for _, name := range []string{"purged", "deleted"} {
		f.must(name, func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().OpenExecution(ctx, nil) })
	}
	f.crash()
	f.open()
	defer f.close()
	for _, name := range []string{"purged", "deleted"} {
		if got := f.reasonOf(name); got.Reason != object.Crashed || got.Crashes != 1 {
			t.Errorf("O5: the %s object after a crash: %+v", name, got)
		}
	}
	f.must("purged", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().Purge(ctx) })
	if err := f.host.Delete(context.Background(), f.id("deleted")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"purged", "deleted"} {
		if got := f.reasonOf(name); got != (object.Activation{}) {
			t.Errorf("O5: the %s object: %+v, want a fresh one", name, got)
		}
	}
}

// Proves O5: the constructor learns of one crash during the handler of an alarm, but not
// of a shutdown during the handler, nor of a failed attempt.
func TestReasonAfterAnAlarmIsCutOff(t *testing.T) {
	for how, want := range map[string]object.Reason{"crash": object.Crashed, "shutdown": object.Restarted, "failure": object.Restarted} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t).open()
			release := make(chan struct{})
			var seen []object.Activation
			f.handleAlarm(func(th *thing, ctx context.Context, _ object.AlarmInfo) error {
				seen = append(seen, th.st.Activation())
				if len(seen) > 1 {
					return nil
				}
				if how == "failure" {
					return errors.New("no")
				}
				<-release
				return errors.New("late")
			})
			f.must("a", setAlarm(time.Second))
			pass(2 * time.Second)
			switch how {
			case "crash":
				survives := f.mem.Crash(0)
				close(release)
				_ = f.host.Shutdown(ended())
				f.mem = survives
			case "shutdown":
				_ = f.host.Shutdown(ended())
				f.mem = f.mem.Crash(0)
				close(release)
			default:
				f.close()
			}
			synctest.Wait()
			f.open()
			defer f.close()
			pass(10 * time.Second)
			if len(seen) != 2 || seen[1].Reason != want || (seen[1].Crashes == 1) != (want == object.Crashed) {
				t.Errorf("O5: after a %s the constructor is told %+v, want %v", how, seen, want)
			}
		})
	}
}
