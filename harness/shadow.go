package harness

import (
	"bytes"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// compareShadow compares what is stored with a second store, which was given the
// same batches and the same crashes.
func (s *Sim) compareShadow() error {
	view, err := s.disk.view()
	if err != nil {
		return err
	}
	got, err := view.NewIter(nil, nil)
	if err != nil {
		return err
	}
	want, err := s.shadow.Crash(keepAll).NewIter(nil, nil)
	if err != nil {
		return err
	}
	g, w := got.First(), want.First()
	for ; g && w; g, w = got.Next(), want.Next() {
		gotValue, _ := got.ValueAndErr()
		wantValue, _ := want.ValueAndErr()
		if !bytes.Equal(got.Key(), want.Key()) || !bytes.Equal(gotValue, wantValue) {
			return fmt.Errorf("the store holds %q = %q where the commits that survived make %q = %q", got.Key(), gotValue, want.Key(), wantValue)
		}
	}
	switch {
	case g:
		return fmt.Errorf("the store holds %q, which no commit that survived makes", got.Key())
	case w:
		return fmt.Errorf("the store lacks %q, which a commit that survived made", want.Key())
	}
	return nil
}

// newShadow is a second store, or nil if no checker wants one.
func newShadow(c *Config) *memstore.Store {
	if !c.shadow {
		return nil
	}
	return memstore.New()
}
