package debounce_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves O12, Case JB10: the error of Open against a definition names one package, and the class
// once, for a mistake in any of its parts; so does the error of a verb.
func TestErrorsNameOnePackage(t *testing.T) {
	for want, c := range map[string]config{
		"debounce: invalid: Name is empty":                            {Quiet: time.Second, Flush: nop},
		"debounce hooks: invalid: Flush is nil":                       {Name: "hooks", Quiet: time.Second},
		"debounce hooks: invalid: Timeout must not be negative: -1ns": {Name: "hooks", Quiet: time.Second, Flush: nop, Timeout: -1},
		"debounce hooks: invalid: Version \"\\xff\" is not UTF-8":     {Name: "hooks", Quiet: time.Second, Flush: nop, Version: "\xff"},
	} {
		_, err := object.Open(object.Options{Dir: t.TempDir()}, debounce.New(c))
		if err == nil || err.Error() != want || !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("error %q, want %q", err, want)
		}
	}
	ctx, dir := context.Background(), t.TempDir()
	folding := debounce.New(config{Name: "hooks", Quiet: time.Hour, Flush: nop, Reduce: collect})
	h := open(t, dir, folding)
	if _, err := folding.Add(ctx, h, name, event{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	shut(t, h)
	keeping := debounce.New(config{Name: "hooks", Quiet: time.Hour, Flush: nop})
	h = open(t, dir, keeping)
	defer shut(t, h)
	const want = "debounce: invalid: hooks/contact-9: the events of generation 1 were collected with Reduce and the definition has no Reduce: flush them with the old definition, or give the new one another Name"
	if _, err := keeping.Add(ctx, h, name, event{ID: "b"}); err == nil || err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}
