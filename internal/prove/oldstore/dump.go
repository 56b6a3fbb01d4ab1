package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/storage"
)

// dump lists the rows of a store as its methods read them, a line for each, without
// the epoch row, which each opening writes.
func dump(s *storage.Store) (string, error) {
	classes, err := s.Classes()
	if err != nil {
		return "", err
	}
	d := &dumper{store: s}
	for _, class := range classes {
		var objects []storage.Object
		err = errors.Join(err, s.Objects(class, "", func(o storage.Object) bool {
			objects = append(objects, o)
			return true
		}))
		for _, o := range objects {
			err = errors.Join(err, d.object(o))
		}
	}
	err = errors.Join(err,
		d.deadLetters(),
		s.OpenMarks(func(shard int, value []byte) error {
			d.line("open mark", shard, value)
			return nil
		}),
		s.Metas("", func(name string, value []byte) error {
			if name != "epoch" && name != "id" { // each opening has its own number, and the first that gives one a random id
				d.line("meta", name, value)
			}
			return nil
		}))
	err = errors.Join(err, d.messages())
	for shard := range s.Shards() {
		entries, alarmErr := s.ScanAlarms(shard, 0, 0, 1000)
		err = errors.Join(err, alarmErr)
		for _, e := range entries {
			d.line("alarm", shard, e.Due, e.Number, e.Value)
		}
	}
	return d.text.String(), err
}

// deadLetters lists the dead letters.
func (d *dumper) deadLetters() error {
	_, err := d.store.ListDead(storage.DeadOptions{}, func(id storage.ID, seq uint64, value []byte) bool {
		d.line("dead letter", id, seq, value)
		return true
	})
	return err
}

// messages lists the messages of all receivers, and the index by time.
func (d *dumper) messages() error {
	count, err := d.store.CountMessages()
	if err != nil {
		return err
	}
	var receivers []storage.ID
	for more := true; more && err == nil; {
		more, err = count.Next(func(to storage.ID, _ int) bool { receivers = append(receivers, to); return true })
	}
	err = errors.Join(err, count.Close())
	for _, to := range receivers {
		for queue := range byte(storage.Queues) {
			err = errors.Join(err, d.store.Messages(to, queue, 0, d.store.MessagesBelow(), func(m storage.StoredMessage) bool {
				d.line("message", m.To, m.Shard, m.Queue, m.Seq, m.Value)
				if m.Stated {
					d.line("  state", m.Due, m.State)
				}
				return true
			}))
		}
	}
	for shard := range d.store.Shards() {
		entries, laterErr := d.store.ScanLater(shard, 0, 0, 1000)
		err = errors.Join(err, laterErr)
		for _, e := range entries {
			d.line("later", e.Shard, e.Due, e.To, e.Queue, e.Seq)
		}
	}
	return err
}

type dumper struct {
	store *storage.Store
	text  strings.Builder
}

func (d *dumper) line(kind string, fields ...any) {
	d.text.WriteString(kind)
	for _, f := range fields {
		switch f := f.(type) {
		case []byte, string:
			fmt.Fprintf(&d.text, " %q", f)
		default:
			fmt.Fprintf(&d.text, " %v", f)
		}
	}
	d.text.WriteByte('\n')
}

// object lists the rows of one object.
func (d *dumper) object(o storage.Object) error {
	d.line("object", o.ID, o.Shard, o.Number, o.Epoch)
	if row, ok, err := d.store.Alarm(o); err != nil {
		return err
	} else if ok {
		d.line("  alarm", row)
	}
	it, err := d.store.ListData(nil, o, "", "", false)
	if err != nil {
		return err
	}
	for it.Next() {
		d.line("  data", it.Key(), it.Value())
	}
	err = it.Close()
	_, markErr := d.store.Marks(o, 0, "", 1000, func(removal int64, key []byte) {
		value, expires, _, readErr := d.store.Mark(nil, o, removal, string(key))
		err = errors.Join(err, readErr)
		d.line("  mark", removal, key, expires, value)
	})
	err = errors.Join(err, markErr, d.store.Events(o.ID, 0, func(seq uint64, value []byte) bool {
		d.line("  event", binary.BigEndian.AppendUint64(nil, seq), value)
		return true
	}))
	return err
}
