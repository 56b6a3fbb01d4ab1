package storage

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// Rows that cannot be read are an error that ends the store, in each way to read them, and no
// panic. Proves S9.
func TestDamagedMessagesEndTheStore(t *testing.T) {
	to := ID{"c", "n"}
	all := func(s *Store, m MessageID) error {
		return s.Messages(to, 0, 0, math.MaxUint64, func(StoredMessage) bool { return true })
	}
	one := func(s *Store, m MessageID) error { _, _, err := s.Message(m); return err }
	times := func(s *Store, m MessageID) error { _, err := s.ScanLater(m.Shard, 0, 0, 10); return err }
	count := func(s *Store, m MessageID) error {
		c, err := s.CountMessages()
		if err != nil {
			return err
		}
		defer c.Close()
		for more := true; more && err == nil; {
			more, err = c.Next(func(ID, int) bool { return true })
		}
		return err
	}
	type readers = []func(*Store, MessageID) error
	for name, c := range map[string]struct {
		plant func(b *Batch, m MessageID)
		read  readers
	}{
		"state without a time":   {func(b *Batch, m MessageID) { b.Set(messageKey(nil, m, messageState), make([]byte, 7)) }, readers{all, one, count}},
		"state of a past time":   {func(b *Batch, m MessageID) { b.SetMessageState(m, 0, -1, nil) }, readers{all, one, times, count}},
		"state of another":       {func(b *Batch, m MessageID) { m.Seq++; b.SetMessageState(m, 0, 0, nil) }, readers{all}},
		"state before the first": {func(b *Batch, m MessageID) { m.Seq--; b.SetMessageState(m, 0, 0, nil) }, readers{all}},
		"third row":              {func(b *Batch, m MessageID) { b.Set(messageKey(nil, m, 2), nil) }, readers{count}},
		"longer key":             {func(b *Batch, m MessageID) { b.Set(append(messageKey(nil, m, messageValue), 0), nil) }, readers{all, one, count}},
		"number 0":               {func(b *Batch, m MessageID) { m.Seq = 0; b.Set(messageKey(nil, m, messageValue), nil) }, readers{all, count}},
		"third queue":            {func(b *Batch, m MessageID) { m.Queue = Queues; b.Set(messageKey(nil, m, messageValue), nil) }, readers{count}},
		"entry without receiver": {func(b *Batch, m MessageID) { b.Set(laterKey(nil, m.Shard, 5, m.Seq), nil) }, readers{times}},
		"entry of no queue":      {func(b *Batch, m MessageID) { b.Set(laterKey(nil, m.Shard, 5, m.Seq), []byte("\x02c\x00n")) }, readers{times}},
		"entry of no time":       {func(b *Batch, m MessageID) { b.Set(laterKey(nil, m.Shard, 0, m.Seq), []byte("\x01c\x00n")) }, readers{times}},
	} {
		for i, read := range c.read {
			t.Run(fmt.Sprint(name, i), func(t *testing.T) {
				s := open(t, memOptions(newMem()))
				m := send(t, s, to, 0, "m")[0]
				if err := read(s, m); err != nil {
					t.Fatalf("before: %v", err)
				}
				commit(t, s, func(b *Batch) { c.plant(b, m) })
				if err := read(s, m); !errors.Is(err, ErrCorrupt) || !errors.Is(err, ErrStorage) || strings.Contains(err.Error(), "\n") {
					t.Errorf("S9: %v", err)
				}
				if s.Err() == nil {
					t.Error("S9: the store lives on")
				}
				if err := s.Close(); !errors.Is(err, ErrCorrupt) {
					t.Errorf("Close: %v", err)
				}
			})
		}
	}
}

// A store that has ended answers each call about messages with its error.
func TestMessagesOfADeadStore(t *testing.T) {
	s := open(t, memOptions(newMem()))
	to := ID{"c", "n"}
	m := send(t, s, to, 0, "m")[0]
	count, err := s.CountMessages()
	if err != nil {
		t.Fatal(err)
	}
	if err := count.Close(); err != nil {
		t.Fatal(err)
	}
	checkAndClose(t, s)
	var b Batch
	b.AddMessage(0, to, 0, nil)
	for name, call := range map[string]func() error{
		"Commit":         func() error { _, err := s.Commit(&b); return err },
		"Messages":       func() error { return s.Messages(to, 0, 0, 10, nil) },
		"empty Messages": func() error { return s.Messages(to, 0, 10, 10, nil) },
		"Message": func() error {
			_, ok, err := s.Message(m)
			return errors.Join(err, map[bool]error{true: errors.New("found")}[ok])
		},
		"HasMessages":   func() error { _, err := s.HasMessages(to, 10); return err },
		"CountLater":    func() error { _, err := s.CountLater(to, 1); return err },
		"ScanLater":     func() error { _, err := s.ScanLater(0, 0, 0, 1); return err },
		"CountMessages": func() error { _, err := s.CountMessages(); return err },
		"Next":          func() error { _, err := count.Next(nil); return err },
	} {
		if err := call(); !errors.Is(err, ErrClosed) || strings.Contains(err.Error(), "found") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
