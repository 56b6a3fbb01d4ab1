package admin

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Proves G3: a token that was used, or is too old, is forgotten when another is put, with the count that it holds.
func TestOldTokensAreForgotten(t *testing.T) {
	var all tokens
	start := time.Unix(0, 0)
	all.put("used", kept{made: start})
	all.put("old", kept{made: start})
	all.put("young", kept{made: start.Add(time.Nanosecond)})
	if _, err := all.take("used", start); err != nil {
		t.Fatal(err)
	}
	all.put("new", kept{made: start.Add(TokenLife)})
	if len(all.all) != 2 || !slices.Equal(all.order, []string{"young", "new"}) {
		t.Errorf("kept: %v, %v", all.order, all.all)
	}
}

// Proves G3: only an error of the whole host ends a verb over many; one of a single job or letter
// is counted.
func TestErrorsThatEndABulkVerb(t *testing.T) {
	refused, skipped := Progress{Refused: 1}, Progress{Skipped: 1}
	for _, c := range []struct {
		err  error
		ends bool
		want Progress
	}{
		{nil, false, Progress{Done: 1}},
		{object.ErrStorage, true, Progress{}},
		{errors.Join(object.ErrStorage, storage.ErrCorrupt), true, Progress{}},
		{object.ErrShutdown, true, Progress{}},
		{object.ErrNoSpace, true, Progress{}},
		{storage.ErrCorrupt, false, refused},
		{object.ErrReset, false, refused},
		{object.ErrNoTurn, false, refused},
		{object.ErrOverloaded, false, refused},
		{jobs.ErrInvalid, false, refused},
		{jobs.ErrNotFound, false, skipped},
		{jobs.ErrIllegalMove, false, skipped},
		{object.ErrNoDeadLetter, false, skipped},
		{errSkipped, false, skipped},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("a: %w", err)
		}
		var p Progress
		ended := p.note(t.Context(), err)
		if c.want.Refused > 0 {
			c.want.LastError = err.Error()
		}
		if p != c.want || c.ends != (ended != nil) || ended != nil && !errors.Is(ended, c.err) {
			t.Errorf("%v: %+v, and the verb ends with %v", c.err, p, ended)
		}
	}
}
