package harness

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
)

// NoDoubleEffect checks that no effect with a key that begins with prefix was done to
// the World twice. Holdfast promises less, because an outside effect may be repeated
// after a crash. Use the check for effects that the other side, or the job, must keep
// single, and call World.Do for requests that the other side accepts, not for those
// that are sent to it: DoOnce tells the two apart.
func NoDoubleEffect(prefix string) Option {
	return checker(check{
		name:    "NoDoubleEffect",
		promise: own(fmt.Sprintf("no effect with a key that begins with %q is done twice", prefix), promiseEffects),
		end:     func(s *Sim) error { return noDoubleEffect(s.world.log, prefix) },
	})
}

// noDoubleEffect looks for a key of the log that stands there twice.
func noDoubleEffect(log []Effect, prefix string) error {
	last := make(map[string]Effect)
	for _, e := range log {
		if before, ok := last[e.Key]; ok && strings.HasPrefix(e.Key, prefix) {
			return fmt.Errorf("the effect %q was done twice: %s, and %s", e.Key, before.when(), e.when())
		}
		last[e.Key] = e
	}
	return nil
}

// AtMostOncePerCrash checks that between two crashes no effect with a key that begins
// with prefix was done to the World twice: a run may repeat because of a crash, and for
// no other reason.
func AtMostOncePerCrash(prefix string) Option {
	return checker(check{
		name:    "AtMostOncePerCrash",
		promise: own(fmt.Sprintf("no effect with a key that begins with %q is repeated, except because of a crash", prefix), promiseRepeats),
		end:     func(s *Sim) error { return atMostOncePerCrash(s.world.log, prefix) },
	})
}

// atMostOncePerCrash looks for a key that the log has twice between two crashes.
func atMostOncePerCrash(log []Effect, prefix string) error {
	last := make(map[string]Effect)
	for _, e := range log {
		if before, ok := last[e.Key]; ok && before.Crashes == e.Crashes && strings.HasPrefix(e.Key, prefix) {
			return fmt.Errorf("the effect %q was done %s, and again %s, with no crash between", e.Key, before.when(), e.when())
		}
		last[e.Key] = e
	}
	return nil
}

// when tells the time of an effect and the start of the process that did it.
func (e Effect) when() string {
	if at := e.Time.Sub(machine.Epoch); at >= 0 && e.Start > 0 {
		return fmt.Sprintf("at %v by start %d", at, e.Start)
	}
	return "at " + e.Time.Format("15:04:05.000")
}
