package workflow

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/storage"
)

// Look is a run as its rows tell it, for tools that look at a store.
type Look struct {
	Waits        []Wait    // of its last suspension
	Since        time.Time // of the last suspension
	Wake         time.Time // when it goes on by itself
	Cancelling   bool      // a Cancel was stored
	CancelReason string
	// Undoing means that the function has returned an error and that the undos run. Undo is the
	// name of the last one with an entry; empty: none has.
	Undoing bool
	Undo    string
}

// lookMax is how many entries LookAt reads to learn whether the undos run.
const lookMax = 1000

// LookAt reads the rows of the run that o is, and reports whether it is one. It reads the newest
// entries of its history, up to a thousand.
func LookAt(s *storage.Store, o storage.Object) (l Look, ok bool, err error) {
	raw, ok, err := s.Data(nil, o, rowKey)
	if err != nil || !ok {
		return l, false, err
	}
	var r runRow
	if json.Unmarshal(raw, &r) != nil {
		return l, false, nil // an object of a user may have a row under the same key
	}
	l = Look{Waits: r.Waits, Since: r.Since, Wake: r.Wake, Cancelling: r.Cancel, CancelReason: r.Reason}
	return l, true, l.lookForUndos(s, o, r.prefix())
}

// lookForUndos looks for the entry of the failed function, from the newest entry on.
func (l *Look) lookForUndos(s *storage.Store, o storage.Object, prefix string) error {
	it, err := s.ListData(nil, o, prefix, storage.PrefixEnd(prefix), true)
	if err != nil {
		return err
	}
	defer it.Close()
	undo := ""
	for n := 0; n < lookMax && it.Next(); n++ {
		e, err := history.Decode(seqOf(string(it.Key()), prefix), it.Value())
		switch {
		case err != nil:
			return err
		case e.Kind == history.Fail && e.Scope == "":
			l.Undoing, l.Undo = true, undo
			return it.Err()
		case strings.HasPrefix(e.Scope, undoPath) && undo == "":
			undo = e.Name
		}
	}
	return it.Err()
}
