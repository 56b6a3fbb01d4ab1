package breaker

import (
	"encoding/json"

	"github.com/holdfast-dev/holdfast/storage"
)

// LookAt reads the stored state of the breaker that o is, for tools that look at a store. It
// reports false for one that is closed, which has no row, and for another object. It reads one row.
func LookAt(s *storage.Store, o storage.Object) (b Status, ok bool, err error) {
	row, ok, err := s.Data(nil, o, stateKey)
	if err != nil || !ok {
		return b, false, err
	}
	if json.Unmarshal(row, &b) != nil || b.State != Open && b.State != HalfOpen {
		return Status{}, false, nil // an object of a user may have a row under the same key
	}
	return b, true, nil
}
