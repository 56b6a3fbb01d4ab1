package harness

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
)

// NoDoubleEffect checks that no effect whose key begins with prefix was done to
// the World twice. Holdfast promises less: what is done outside may be repeated
// after a crash. So it is for effects that the other side, or the job, must keep
// single: give the World what the other side takes, not what is sent to it.
func NoDoubleEffect(prefix string) Option {
	return checker(check{
		name:    "NoDoubleEffect",
		promise: own(fmt.Sprintf("no effect whose key begins with %q is done twice", prefix), promiseEffects),
		end:     func(s *Sim) error { return NoDoubleEffectIn(s.world.log, prefix) },
	})
}

// NoDoubleEffectIn is NoDoubleEffect for a log of effects from anywhere.
func NoDoubleEffectIn(log []Effect, prefix string) error {
	last := make(map[string]Effect)
	for _, e := range log {
		if before, ok := last[e.Key]; ok && strings.HasPrefix(e.Key, prefix) {
			return fmt.Errorf("the effect %q was done twice: %s, and %s", e.Key, before.when(), e.when())
		}
		last[e.Key] = e
	}
	return nil
}

// AtMostOncePerCrash checks that between two crashes no effect whose key begins
// with prefix was done to the World twice: a run may repeat for a crash, and for
// nothing else.
func AtMostOncePerCrash(prefix string) Option {
	return checker(check{
		name:    "AtMostOncePerCrash",
		promise: own(fmt.Sprintf("no effect whose key begins with %q is repeated but for a crash", prefix), promiseRepeats),
		end:     func(s *Sim) error { return AtMostOncePerCrashIn(s.world.log, prefix) },
	})
}

// AtMostOncePerCrashIn is AtMostOncePerCrash for a log of effects from anywhere.
func AtMostOncePerCrashIn(log []Effect, prefix string) error {
	last := make(map[string]Effect)
	for _, e := range log {
		if before, ok := last[e.Key]; ok && before.Crashes == e.Crashes && strings.HasPrefix(e.Key, prefix) {
			return fmt.Errorf("the effect %q was done %s, and again %s, with no crash between", e.Key, before.when(), e.when())
		}
		last[e.Key] = e
	}
	return nil
}

// when tells the time of an effect, and who did it.
func (e Effect) when() string {
	if at := e.Time.Sub(machine.Epoch); at >= 0 && e.Start > 0 {
		return fmt.Sprintf("at %v by start %d", at, e.Start)
	}
	return "at " + e.Time.Format("15:04:05.000")
}
