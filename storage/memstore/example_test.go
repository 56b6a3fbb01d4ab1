package memstore_test

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A crash keeps the synced batches, and as many of the later ones as one asks for.
func ExampleStore_Crash() {
	s := memstore.New()
	put := func(key string) {
		var b storage.Batch
		b.Set([]byte(key), nil)
		if err := s.Apply(b.Repr()); err != nil {
			fmt.Println(err)
		}
	}
	put("a")
	if err := s.Sync(); err != nil {
		fmt.Println(err)
	}
	put("b")
	put("c")
	fmt.Println(s.Unsynced())
	after := s.Crash(1)
	for _, key := range []string{"a", "b", "c"} {
		_, _, err := after.Get([]byte(key))
		fmt.Println(key, err == nil)
	}
	// Output:
	// 2
	// a true
	// b true
	// c false
}
