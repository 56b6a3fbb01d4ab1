package timers

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// Examine returns an error if the stored rows of an object contradict one another: a timer
// without its name, a name without its timer, or an alarm that is not at the time of the
// earliest timer. An alarm that waits for another attempt may be at another time. Examine reads all
// timers of the object, and is for tests and tools; harness.EarliestTimer calls it for each
// object.
func Examine(store *storage.Store, o storage.Object) error {
	it, err := store.ListData(nil, o, prefix, storage.PrefixEnd(prefix), false)
	if err != nil {
		return fmt.Errorf("%s: %w", o.ID, err)
	}
	defer it.Close()
	dues, names, earliest := map[string]int64{}, map[string]int64{}, int64(0)
	for it.Next() {
		key := string(it.Key())
		if name, ok := strings.CutPrefix(key, namePrefix); ok && len(it.Value()) == 8 {
			names[name] = int64(binary.BigEndian.Uint64(it.Value()))
			continue
		}
		if strings.HasPrefix(key, deadPrefix) {
			continue
		}
		r, err := decodeRow(key, it.Value())
		if err != nil {
			return fmt.Errorf("%s: %w", o.ID, err)
		}
		if before, twice := dues[r.name]; twice {
			return fmt.Errorf("%s: timers: timer %q is due at %d and at %d", o.ID, r.name, before, r.due)
		}
		dues[r.name] = r.due
		if len(dues) == 1 { // the rows are in the order of their times
			earliest = r.due
		}
	}
	if err := it.Err(); err != nil {
		return fmt.Errorf("%s: %w", o.ID, err)
	}
	for name, due := range dues {
		if names[name] != due {
			return fmt.Errorf("%s: timers: timer %q is due at %d, and its name says %d", o.ID, name, due, names[name])
		}
	}
	if len(names) != len(dues) {
		return fmt.Errorf("%s: timers: there are %d names for %d timers", o.ID, len(names), len(dues))
	}
	return examineAlarm(store, o, earliest)
}

// examineAlarm compares the alarm of an object with its earliest timer; 0 is none.
func examineAlarm(store *storage.Store, o storage.Object, earliest int64) error {
	if earliest == 0 {
		return nil
	}
	value, ok, err := store.Alarm(o)
	if err != nil {
		return fmt.Errorf("%s: %w", o.ID, err)
	}
	if !ok {
		return fmt.Errorf("%s: timers: a timer is due at %d, and there is no alarm", o.ID, earliest)
	}
	at, err := alarm.DecodeRow(value)
	if err != nil {
		return fmt.Errorf("%s: %w", o.ID, err)
	}
	if due := alarm.Nanos(at.Due); due != earliest && at.Attempt+at.Crashes+at.OwnersLost == 0 {
		return fmt.Errorf("%s: timers: the earliest timer is due at %d, and the alarm at %d", o.ID, earliest, due)
	}
	return nil
}
