package shardlogtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// read: a read begins where it is asked to, and ends when its function fails.
func read(t TB, s *suite) {
	w := s.claim(t, s.next(), "a")
	const last = 20
	for i := range last {
		w.must(t, fmt.Sprint(i+1))
	}
	for from := shardlog.Position(1); from <= last; from++ {
		r := reading{at: from - 1, based: true}
		if err := r.until(w.Log, w.Shard, last); err != nil || r.at != last || string(r.records[0].Payload) != fmt.Sprint(from) {
			t.Fatalf("a read from record %d of %d ended at %d: %v", from, last, r.at, err)
		}
	}
	stop := errors.New("stop")
	err, calls := error(nil), 0
	for n := 0; calls == 0 && n < tries; n++ {
		err = w.Log.Read(context.Background(), w.Shard, 1, func(shardlog.Record) error { calls++; return stop })
	}
	if calls != 1 || !errors.Is(err, stop) {
		t.Errorf("the function of a read failed, was called %d times, and the read returned %v", calls, err)
	}
	_ = w.Log.Read(context.Background(), w.Shard, last+1, func(r shardlog.Record) error {
		t.Errorf("a read from behind the end gave record %d", r.At)
		return nil
	})
}

// readBeside: reads beside appends and truncation give records that follow one another up to the head, or tell that the log begins later.
func readBeside(t TB, s *suite) {
	readWhileChanged(t, s)
	w := s.claim(t, s.next(), "a")
	appended := make(chan shardlog.Position, 1)
	done := make(chan struct{})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for ended := false; !ended; {
				select {
				case <-done:
					ended = true // one more read
				default:
				}
				readOnce(t, w.Log, w.Shard)
				runtime.Gosched() // because a fast log would keep the appends from the processor
			}
		})
	}
	all.Go(func() {
		defer close(done)
		for at := range appended {
			s.remove(t, w.Shard, at-5)
		}
	})
	for i := range 300 {
		if err := w.Append(fmt.Sprint(i)); err != nil {
			t.Errorf("append beside reads: %v", err)
			break
		}
		if i%10 == 9 {
			appended <- w.State.Last
		}
	}
	close(appended)
	all.Wait()
	w.State.First = w.State.Last - 4
	s.headIs(t, w.Shard, w.State)
	s.holds(t, w.Shard, "295", "296", "297", "298", "299")
}

// readWhileChanged appends and truncates while the function of a read is called, as if that were slow.
func readWhileChanged(t TB, s *suite) {
	w := s.claim(t, s.next(), "a")
	for i := range 20 {
		w.must(t, fmt.Sprint(i+1))
	}
	r := reading{}
	r.taken = func(at shardlog.Position) {
		if at == 3 {
			w.must(t, "21", "22")
			s.remove(t, w.Shard, 10)
		}
	}
	if err := r.until(w.Log, w.Shard, 20); err != nil && !errors.Is(err, shardlog.ErrTruncated) {
		t.Errorf("a read whose log was truncated after record 3: %v", err)
	}
	w.State.First = 11
	s.headIs(t, w.Shard, w.State)
}

// readOnce reads a log from its first record to its head.
func readOnce(t TB, log shardlog.Log, shard int) {
	h, err := head(log, shard)
	if err != nil {
		t.Errorf("head beside appends: %v", err)
		return
	}
	r := reading{at: h.First - 1, based: true}
	if err := r.until(log, shard, h.Last); err != nil && !errors.Is(err, shardlog.ErrTruncated) {
		t.Errorf("read beside appends and truncation: %v", err)
	}
}
