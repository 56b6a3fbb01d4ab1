package harness

import (
	"bytes"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// NoTornBatch checks that a crash leaves the first commits, in their order and each as
// a whole. It compares the store with a second one in a map, so it finds bugs of
// PebbleStore only.
func NoTornBatch(c *Config) {
	c.shadow = true
	checker(check{
		name:    "NoTornBatch",
		promise: promisePrefix.String(),
		stored:  func(s *Sim, _ *storedState) error { return s.compareShadow() },
	})(c)
}

// compareShadow compares the store with a second one, which was given the same batches
// and the same crashes.
func (s *Sim) compareShadow() error {
	view, err := s.disk.view()
	if err != nil {
		return err
	}
	return compareStores(view, s.shadow.Crash(keepAll))
}

// compareStores compares the rows of a store with those that it should have.
func compareStores(holds, should *memstore.Store) error {
	got, err := holds.NewIter(nil, nil)
	if err != nil {
		return err
	}
	want, err := should.NewIter(nil, nil)
	if err != nil {
		return err
	}
	g, w := got.First(), want.First()
	for ; g && w && bytes.Equal(got.Key(), want.Key()); g, w = got.Next(), want.Next() {
		gotValue, _ := got.ValueAndErr()
		wantValue, _ := want.ValueAndErr()
		if !bytes.Equal(gotValue, wantValue) {
			return fmt.Errorf("the store holds %q = %q where the commits that survived make it %q", got.Key(), gotValue, wantValue)
		}
	}
	switch {
	case w && (!g || bytes.Compare(got.Key(), want.Key()) > 0):
		return fmt.Errorf("the store lacks %q, which a commit that survived made", want.Key())
	case g:
		return fmt.Errorf("the store holds %q, which no commit that survived makes", got.Key())
	}
	return nil
}

// newShadow is a second store, or nil if it is not needed. Pebble needs one, because a
// torn write is compared with it.
func newShadow(c *Config) *memstore.Store {
	if !c.shadow && c.store != storePebble {
		return nil
	}
	return memstore.New()
}
