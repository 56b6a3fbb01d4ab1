package storagetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/storage"
)

// readAll is the rows of s, read in every way that s can be read.
func readAll(s *storage.Store) (rows, error) {
	out := rows{}
	r := reader{s, out}
	err := s.Objects(class, "", func(o storage.Object) bool {
		out["object "+o.ID.Name] = ""
		return true
	})
	if err != nil {
		return nil, err
	}
	for i := range 5 {
		if err := r.object(storage.ID{Class: class, Name: fmt.Sprint(i)}); err != nil {
			return nil, err
		}
	}
	if v, ok, err := s.Meta("n"); err != nil {
		return nil, err
	} else if ok {
		out["meta n"] = string(v)
	}
	return out, r.scans()
}

type reader struct {
	store *storage.Store
	out   rows
}

// object reads the rows of one object, dead or alive.
func (r reader) object(id storage.ID) error {
	err := r.store.Events(id, 0, func(seq uint64, v []byte) bool {
		r.out[fmt.Sprintf("event %s %d", id.Name, seq)] = string(v)
		return true
	})
	if err != nil {
		return err
	}
	if err := r.messages(id); err != nil {
		return err
	}
	o, err := r.store.Find(id)
	if err != nil || o.Number == 0 {
		return err
	}
	if err := r.data(o); err != nil {
		return err
	}
	for i := range 3 {
		key := fmt.Sprint(i)
		v, _, ok, err := r.store.FindMark(o, key)
		if err != nil {
			return err
		}
		if ok {
			r.out["mark "+id.Name+" "+key] = string(v)
		}
	}
	v, ok, err := r.store.Alarm(o)
	if ok {
		r.out["alarm "+id.Name] = string(v)
	}
	return err
}

// data lists the object's keys and gets each of them.
func (r reader) data(o storage.Object) error {
	it, err := r.store.ListData(nil, o, "", "", false)
	if err != nil {
		return err
	}
	defer it.Close()
	for it.Next() {
		key, value := string(it.Key()), string(it.Value())
		r.out["data "+o.ID.Name+" "+key] = value
		got, ok, err := r.store.Data(nil, o, key)
		if err != nil {
			return err
		}
		if !ok || string(got) != value {
			return fmt.Errorf("%w: %s: key %q is listed and reads as another value", errWrong, o.ID, key)
		}
	}
	return it.Close()
}

// scans reads the open marks, and compares the index of alarms, and that of messages by time,
// with their rows.
func (r reader) scans() error {
	err := r.store.OpenMarks(func(_ int, v []byte) error {
		r.out["open "+string(v)] = ""
		return nil
	})
	if err != nil {
		return err
	}
	for shard := range r.store.Shards() {
		if err := r.later(shard); err != nil {
			return err
		}
		entries, err := r.store.ScanAlarms(shard, 0, 0, 100)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if row := r.out["alarm "+string(e.Value)]; row != strconv.FormatInt(e.Due, 10) {
				return fmt.Errorf("%w: alarm of %s: the index says %d, the row %q", errWrong, e.Value, e.Due, row)
			}
		}
	}
	return nil
}

// number is which commit the rows say was the last.
func (r rows) number() (int, error) {
	v, ok := r["meta n"]
	if !ok {
		return 0, nil
	}
	return strconv.Atoi(v)
}

// errWrong is in each error that tells of rows that differ from the committed ones.
var errWrong = errors.New("wrong")

// compare returns the first difference between the rows and the expected ones.
func (r rows) compare(want rows) error {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if v, ok := r[k]; !ok {
			return fmt.Errorf("%w: row %q is missing", errWrong, k)
		} else if v != want[k] {
			return fmt.Errorf("%w: row %q holds %.20q, want %.20q", errWrong, k, v, want[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(r)) {
		if _, ok := want[k]; !ok {
			return fmt.Errorf("%w: row %q should not be there", errWrong, k)
		}
	}
	return nil
}
