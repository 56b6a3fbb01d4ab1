package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/seam"
)

// Options that are zero have exactly the defaults of the documents, and those that are
// one above zero stay.
func TestDefaultOptions(t *testing.T) {
	o := engine.Options{}.WithDefaults()
	if o.Lease != 30*time.Second || o.Heartbeat != 10*time.Second || o.MergeEnds != 512 || o.Limits != (recovery.Limits{}).WithDefaults() {
		t.Errorf("defaults: %+v", o)
	}
	o = engine.Options{Lease: 1, Heartbeat: 1, MergeEnds: 1}.WithDefaults()
	if o.Lease != 1 || o.Heartbeat != 1 || o.MergeEnds != 1 {
		t.Errorf("given: %+v", o)
	}
	if err := (engine.Options{Lease: 2, Heartbeat: 1}).Validate(); err != nil {
		t.Error(err)
	}
	want := "Heartbeat 2ns is not less than Lease 2ns"
	if err := (engine.Options{Lease: 2, Heartbeat: 2}).Validate(); !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Proves J15: a Version is at most 128 bytes of UTF-8, and Migrate needs one.
func TestValidReader(t *testing.T) {
	migrate := func(string, []byte) (int, error) { return 0, nil }
	for want, r := range map[string]engine.Reader[int]{
		"":  {},
		" ": {Version: strings.Repeat("v", 128), Migrate: migrate},
		"Version has 129 bytes, the limit is 128": {Version: strings.Repeat("v", 129)},
		`Version "\xff" is not UTF-8`:             {Version: "\xff"},
		"Config.Migrate needs a Version":          {Migrate: migrate, Field: "Config.Migrate"},
	} {
		err := r.Validate()
		if want = strings.TrimSpace(want); (err == nil) != (want == "") || err != nil && (!errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Texts and stacks are stored up to their bounds, and no byte more.
func TestShortenedTexts(t *testing.T) {
	if got := engine.Shorten(strings.Repeat("x", 2*engine.MaxTextBytes)); len(got) != engine.MaxTextBytes {
		t.Errorf("a text is cut to %d bytes", len(got))
	}
	out := engine.Outcome{Err: &seam.PanicError{Value: "ouch", Stack: []byte(strings.Repeat("x", 2*object.MaxStackBytes))}}
	if got := out.Stack(); len(got) != object.MaxStackBytes {
		t.Errorf("a stack is cut to %d bytes", len(got))
	}
}

// Proves J16: Each makes 64 calls at a time if it is not told otherwise, and those of one
// name in order.
func TestEachAtATime(t *testing.T) {
	inLives(t, func(t *testing.T, l *lives) {
		for atOnce, want := range map[int]int{-1: 64, 0: 64, 1: 1, 2: 2, 1000: 70} {
			names := make([]string, 140)
			for i := range names {
				names[i] = fmt.Sprint(i % 70)
			}
			var mu sync.Mutex
			var now, peak int
			var calls []int
			count := func(n int) {
				mu.Lock()
				defer mu.Unlock()
				now += n
				peak = max(peak, now)
			}
			engine.Each(l.host, names, atOnce, func(i int) {
				count(1)
				time.Sleep(time.Second)
				mu.Lock()
				calls = append(calls, i)
				mu.Unlock()
				count(-1)
			})
			for i := range 70 {
				if first := slices.Index(calls, i); first < 0 || first > slices.Index(calls, i+70) {
					t.Errorf("%d at once: the calls of name %d are out of order", atOnce, i)
				}
			}
			if peak != want || len(calls) != len(names) {
				t.Errorf("%d at once: %d calls, %d at a time, want %d", atOnce, len(calls), peak, want)
			}
		}
		synctest.Wait()
	}, newRigKind(&rigKind{}))
}
