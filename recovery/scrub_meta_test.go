package recovery_test

import (
	"context"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
)

// Proves R6: an object of a user may have a row under the key of metadata. The scrubber takes it for
// a job only if it names the object and has a type and a status, as each job's does.
func TestScrubPassesOverARowOfAUser(t *testing.T) {
	type pen struct{ st *object.State }
	pens := object.Define("pen", func(_ context.Context, st *object.State) (*pen, error) { return &pen{st}, nil })
	write := object.Handle(pens, "write", func(p *pen, ctx context.Context, row string) (string, error) {
		return row, p.st.Storage().PutBytes(ctx, jobs.MetaKey, []byte(row))
	})
	dir := t.TempDir()
	h := open(t, dir, pens)
	for name, row := range map[string]string{
		"a job":    `{"type":"continuous","name":"pen","id":"a job","status":"executing"}`,
		"no name":  `{"type":"continuous","id":"no name","status":"executing"}`,
		"no id":    `{"type":"continuous","name":"pen","status":"executing"}`,
		"no type":  `{"name":"pen","id":"no type","status":"executing"}`,
		"no state": `{"type":"continuous","name":"pen","id":"no state","status":"drying"}`,
		"other":    `{"type":"continuous","name":"pen","id":"a job","status":"executing"}`,
		"a number": `7`,
		"empty":    ``,
	} {
		if _, err := write.Call(t.Context(), h, name, row); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, h)
	store, err := storage.OpenReadOnly(storage.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s, err := recovery.ScrubStore(store)
	if err != nil || s.Objects != 8 || len(s.Findings) != 1 || s.Findings[0].ID.Name != "a job" {
		t.Errorf("R6: found %v among %d objects, %v", s.Findings, s.Objects, err)
	}
}
