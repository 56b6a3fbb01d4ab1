package harness_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// once runs a scenario without a crash and prints its problem.
func once(scenario harness.Scenario, opts ...harness.Option) {
	report, err := harness.Explore(scenario, append(opts, harness.Budget(1))...)
	fmt.Println(report.Points > 0, err)
}

// A kettle boils by its alarm, a minute after it was put on.
type kettle struct{ st *object.State }

func (k *kettle) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	return k.st.Storage().Put(ctx, "boiled", true)
}

var (
	kettles = object.Define("kettle", func(_ context.Context, st *object.State) (*kettle, error) { return &kettle{st}, nil })
	putOn   = object.Handle(kettles, "putOn", func(k *kettle, ctx context.Context, _ struct{}) (time.Time, error) {
		at := k.st.Now().Add(time.Minute)
		return at, k.st.SetAlarm(ctx, at)
	})
)

// boiled reads the stored count, without running the kettle's code.
func boiled(s *harness.Sim) bool {
	var is bool
	_, err := harness.Stored(s.Store(), kettles.ID("k"), "boiled", &is)
	return is && err == nil
}

// Advance lets virtual time pass, and all that comes due in it happen.
func ExampleSim_Advance() {
	once(func(s *harness.Sim) {
		s.Host(kettles)
		s.Must(putOn.Call(s.Context(), s, "k", struct{}{}))
		s.Advance(59 * time.Second)
		before := boiled(s)
		s.Advance(2 * time.Second)
		if s.Crashes() == 0 {
			s.Always("it boils after a minute", !before && boiled(s))
		}
	})
	// Output: true <nil>
}

// Finally looks when faults are over and all has settled, so it holds after
// every crash.
func ExampleSim_Finally() {
	report, err := harness.Explore(func(s *harness.Sim) {
		s.Host(kettles)
		s.OK(s.Retry(func() error { _, err := putOn.Call(s.Context(), s, "k", struct{}{}); return err }))
		s.Finally("it has boiled", func() error {
			if !boiled(s) {
				return errors.New("the kettle is cold")
			}
			return nil
		})
	}, harness.Depth(2), harness.OneAlarm)
	fmt.Println(err, report.Covered)
	// Output: <nil> 1
}

// Eventually waits, and fails if it waits in vain.
func ExampleSim_Eventually() {
	once(func(s *harness.Sim) {
		s.Host(kettles)
		s.OK(s.Retry(func() error { _, err := putOn.Call(s.Context(), s, "k", struct{}{}); return err }))
		s.Eventually(2*time.Minute, "it boils", func() bool { return boiled(s) })
	})
	// Output: true <nil>
}

// Crash ends the process by hand; the host stays down until Restart.
func ExampleSim_Crash() {
	once(func(s *harness.Sim) {
		s.Host(kettles)
		s.OK(s.Retry(func() error { _, err := putOn.Call(s.Context(), s, "k", struct{}{}); return err }))
		s.Crash(harness.PowerLoss)
		s.Advance(time.Hour)
		s.Restart()
		s.Advance(time.Second)
		s.Always("what was due while it was down happens at once", boiled(s))
	})
	// Output: true <nil>
}

// Restart opens the store with other code, as a deploy does.
func ExampleSim_Restart() {
	once(func(s *harness.Sim) {
		s.Host(kettles)
		s.OK(s.Retry(func() error { _, err := putOn.Call(s.Context(), s, "k", struct{}{}); return err }))
		s.Restart(harness.WithCode()) // a version without kettles
		s.Advance(time.Hour)
		gone := boiled(s)
		s.Restart(harness.WithCode(kettles))
		s.Advance(time.Second)
		s.Always("the alarm waits for its class", !gone && boiled(s))
	})
	// Output: true <nil>
}

// Unknown distinguishes a call that a crash cut off from a refused one.
func ExampleUnknown() {
	unknown := false
	_, err := harness.Explore(func(s *harness.Sim) {
		s.Host(kettles)
		_, err := putOn.Call(s.Context(), s, "k", struct{}{})
		unknown = unknown || harness.Unknown(err)
	})
	fmt.Println(unknown, err)
	// Output: true <nil>
}

// World is the outside: it survives crashes, and counts.
func ExampleWorld_Do() {
	once(func(s *harness.Sim) {
		s.Host(kettles)
		s.World().Do("letter/alice", nil)
		s.World().Do("letter/alice", nil)
		s.Crash(harness.Kill)
		s.Restart()
		s.Advance(time.Second)
		s.Logf("%v", s.World().Log())
		s.Always("the letters are out", s.World().Count("letter/alice") == 2)
	})
	// Output: true <nil>
}

// Sometimes fails an exploration in which something never happens: a test that does not
// reach its case.
func ExampleSim_Sometimes() {
	_, err := harness.Explore(func(s *harness.Sim) {
		s.Host(kettles)
		s.Must(putOn.Call(s.Context(), s, "k", struct{}{}))
		s.Sometimes("a crash came before the alarm was set", s.Crashes() > 0)
	})
	fmt.Println(err)
	// Output: <nil>
}

// WithHost is for questions to the host itself.
func ExampleSim_WithHost() {
	once(func(s *harness.Sim) {
		s.Host(kettles)
		s.OK(s.Retry(func() error { _, err := putOn.Call(s.Context(), s, "k", struct{}{}); return err }))
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			in, err := h.Inspect(ctx, kettles.ID("k"))
			if err == nil && in.Alarm == nil {
				return errors.New("no alarm is set")
			}
			return err
		}))
	})
	// Output: true <nil>
}

// Go is a second client, beside the scenario.
func ExampleSim_Go() {
	once(func(s *harness.Sim) {
		s.Host(kettles)
		done := false
		s.Go("client", func() {
			s.Sleep(time.Second)
			s.Must(putOn.Call(s.Context(), s, "k", struct{}{}))
			done = true
		})
		s.Eventually(time.Minute, "the client has called", func() bool { return done })
		s.RunUntilIdle()
	})
	// Output: true <nil>
}

// Invariant is checked in every state that a crash leaves.
func ExampleInvariant() {
	paired := harness.Invariant("an object with an alarm exists", func(store *storage.Store) error { return store.Check() })
	_, err := harness.Explore(func(s *harness.Sim) {
		s.Host(kettles)
		s.Must(putOn.Call(s.Context(), s, "k", struct{}{}))
	}, paired, harness.PebbleStore())
	fmt.Println(err)
	// Output: <nil>
}

// StateMatches compares the stored state at the end with a model.
func ExampleStateMatches() {
	_, err := harness.Explore(func(s *harness.Sim) {
		s.Host(kettles)
		s.OK(s.Retry(func() error { _, err := putOn.Call(s.Context(), s, "k", struct{}{}); return err }))
	}, harness.Settle(time.Hour), harness.StateMatches(func(s *harness.Sim) error {
		if !boiled(s) {
			return errors.New("the model's kettle has boiled")
		}
		return nil
	}))
	fmt.Println(err)
	// Output: <nil>
}

// Boot and Call crash a program without a host: here a bare store.
func ExampleSim_Boot() {
	_, err := harness.Explore(func(s *harness.Sim) {
		var store *storage.Store
		s.Boot(func(_ context.Context, p *harness.Process) (err error) {
			store, err = storage.Open(p.Store)
			return err
		})
		s.OK(s.Retry(func() error {
			return s.Call("note", func(context.Context) error {
				var b storage.Batch
				b.SetMeta("note", []byte("kept"))
				t, err := store.Commit(&b)
				if err != nil {
					return err
				}
				return store.WaitDurable(t)
			})
		}))
		s.Finally("the note is kept", func() error {
			v, _, err := s.Store().Meta("note")
			if string(v) != "kept" {
				return fmt.Errorf("the note is %q, %v", v, err)
			}
			return err
		})
	}, harness.Depth(2))
	fmt.Println(err)
	// Output: <nil>
}

// A kettle boils once and in time, with any fault beside it.
func ExampleSim_AllowFaults() {
	report, err := harness.Explore(func(s *harness.Sim) {
		s.AllowFaults(harness.Faults{FailCommit: 1, Slow: 10 * time.Second, DropWake: 1, DupAlarm: 1})
		s.Host(kettles)
		s.OK(s.Retry(func() error { _, err := putOn.Call(s.Context(), s, "k", struct{}{}); return err }))
		s.Finally("the water boils", func() error {
			if !boiled(s) {
				return errors.New("it is cold")
			}
			return nil
		})
	})
	fmt.Println(err, report.Faults["failcommit"] > 0, report.Faults["slow"] > 0)
	// Output: <nil> true true
}

// An alarm that is due is delivered twice, and handled once.
func ExampleAllowFaults() {
	_, err := harness.Explore(func(s *harness.Sim) {
		s.Host(kettles)
		s.OK(s.Retry(func() error { _, err := putOn.Call(s.Context(), s, "k", struct{}{}); return err }))
		s.Advance(time.Hour)
		s.Always("the water boils", boiled(s))
	}, harness.AllowFaults(harness.Faults{DupAlarm: 1}))
	fmt.Println(err)
	// Output: <nil>
}

// A schedule of a failure may name faults beside crashes, each with its place.
func ExampleFaults() {
	_, err := harness.Explore(func(s *harness.Sim) {
		s.Host(kettles)
		s.OK(s.Retry(func() error { _, err := putOn.Call(s.Context(), s, "k", struct{}{}); return err }))
		s.Advance(time.Minute)
		s.Always("it boils to the second", s.Crashes() > 0 || boiled(s))
	}, harness.AllowFaults(harness.Faults{Slow: time.Second}))
	var f *harness.Failure
	if errors.As(err, &f) {
		fmt.Println(strings.HasPrefix(f.Schedule, "v1:seed=0:slow="))
	}
	// Output: true
}
