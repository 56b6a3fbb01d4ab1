package recovery

import (
	"testing"
	"time"
)

// A walk with slow reads pauses longer, so that nine tenths of a processor stay free for
// the load. A pause that is asked for is kept.
func TestScrubPausesAsLongAsItMust(t *testing.T) {
	for _, c := range []struct{ asked, took, want time.Duration }{
		{0, 0, 10 * time.Millisecond},
		{0, time.Millisecond, 10 * time.Millisecond},
		{0, 100 * time.Millisecond, 900 * time.Millisecond},
		{time.Millisecond, 100 * time.Millisecond, time.Millisecond},
	} {
		if got := (ScrubOptions{Pause: c.asked}).pause(c.took); got != c.want {
			t.Errorf("pause of %v after %v: %v, want %v", c.asked, c.took, got, c.want)
		}
	}
}
