package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/object"
)

// sums are the totals of a package, or of all of them.
type sums struct {
	Files    int64 `json:"files"`
	Bytes    int64 `json:"bytes"`
	Lines    int64 `json:"lines"`
	Unparsed int64 `json:"unparsed"`
}

// add adds m times sign.
func (s *sums) add(m *measure, sign int64) {
	if m == nil {
		return
	}
	s.Files += sign
	s.Bytes += sign * m.Bytes
	s.Lines += sign * m.Lines
	if m.Unparsed {
		s.Unparsed += sign
	}
}

func (s *sums) plus(o sums) {
	s.Files += o.Files
	s.Bytes += o.Bytes
	s.Lines += o.Lines
	s.Unparsed += o.Unparsed
}

// totals is the object of one top-level package. It knows no files: its numbers
// are right because each change is folded exactly once.
type totals struct {
	st   *object.State
	sums sums
}

var (
	packages = object.Define("totals", newTotals)
	fold     = object.Handle(packages, "fold", (*totals).fold)
	read     = object.Handle(packages, "read", (*totals).read)
	sumsOf   = object.Handle(packages, "sums", (*totals).sumsOf)
)

func newTotals(ctx context.Context, st *object.State) (*totals, error) {
	t := &totals{st: st}
	_, err := st.Storage().GetInto(ctx, "sums", &t.sums)
	return t, err
}

const importPrefix = "i/" // + imported path: how many files import it

// fold adds changes. It is called with the key of a flush as idempotency key, so
// that a flush which is repeated after a crash is folded once.
func (t *totals) fold(ctx context.Context, changes []change) (folded int, err error) {
	next, imports := t.sums, make(map[string]int64)
	for _, c := range changes {
		next.add(c.Minus, -1)
		next.add(c.Plus, 1)
		countImports(imports, c.Minus, -1)
		countImports(imports, c.Plus, 1)
	}
	if err := t.addImports(ctx, imports); err != nil {
		return 0, err
	}
	if err := t.st.Storage().Put(ctx, "sums", next); err != nil {
		return 0, err
	}
	t.sums = next
	return len(changes), nil
}

func countImports(counts map[string]int64, m *measure, sign int64) {
	if m == nil {
		return
	}
	for _, path := range m.Imports {
		counts[path] += sign
	}
}

// addImports adds to the stored counts.
func (t *totals) addImports(ctx context.Context, by map[string]int64) error {
	for _, path := range slices.Sorted(maps.Keys(by)) {
		n := by[path]
		if n == 0 {
			continue
		}
		var have int64
		if _, err := t.st.Storage().GetInto(ctx, importPrefix+path, &have); err != nil {
			return err
		}
		if err := t.st.Storage().Put(ctx, importPrefix+path, have+n); err != nil {
			return err
		}
	}
	return nil
}

// packageTotals is the state of a totals object.
type packageTotals struct {
	Name    string
	Sums    sums
	Imports map[string]int64
}

func (t *totals) read(ctx context.Context, _ struct{}) (packageTotals, error) {
	out := packageTotals{Name: t.st.Name(), Sums: t.sums, Imports: make(map[string]int64)}
	for item, err := range t.st.Storage().List(ctx, object.ListOptions{Prefix: importPrefix}) {
		if err != nil {
			return out, err
		}
		var n int64
		if err := t.st.Driver().Codec().Decode(item.Value, &n); err != nil {
			return out, err
		}
		if n > 0 {
			out.Imports[strings.TrimPrefix(item.Key, importPrefix)] = n
		}
	}
	return out, nil
}

func (t *totals) sumsOf(context.Context, struct{}) (sums, error) { return t.sums, nil }
