package workflow

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/row"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

const (
	signalPrefix = "s/" // then the sequence in 8 bytes: name | value to the end

	// Beyond these a signal is refused with ErrBusy.
	maxSignals     = 10_000
	maxSignalBytes = 16 << 20
)

// waitingSignals are the stored signals that the run has not taken. Their values stay on disk.
type waitingSignals struct {
	byName map[string][]uint64 // their sequences, oldest first
	sizes  map[uint64]int
	bytes  int
	next   uint64
}

func (w *waitingSignals) has(name string) bool { return len(w.byName[name]) > 0 }

func (w *waitingSignals) add(seq uint64, name string, bytes int) {
	if w.byName == nil {
		w.byName, w.sizes = make(map[string][]uint64), make(map[uint64]int)
	}
	w.byName[name] = append(w.byName[name], seq)
	w.sizes[seq] = bytes
	w.bytes += bytes
	w.next = max(w.next, seq+1)
}

func (w *waitingSignals) remove(seq uint64) {
	for name, seqs := range w.byName {
		if len(seqs) > 0 && seqs[0] == seq {
			w.byName[name] = seqs[1:]
			w.bytes -= w.sizes[seq]
			delete(w.sizes, seq)
			if len(seqs) == 1 {
				delete(w.byName, name)
			}
			return
		}
	}
}

// loadSignals reads the signals that wait.
func (in *instance) loadSignals(ctx context.Context) error {
	for item, err := range in.st.Storage().List(ctx, object.ListOptions{Prefix: signalPrefix}) {
		if err != nil {
			return err
		}
		name, _, err := decodeSignal(item.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", in.st.ID(), err)
		}
		in.signals.add(seqOf(item.Key, signalPrefix), name, len(item.Value))
	}
	return nil
}

// decodeSignal reads the row of a signal.
func decodeSignal(b []byte) (name string, value []byte, err error) {
	r := row.Read(b)
	name = r.Text()
	r.Required()
	value = r.Rest()
	if !r.OK() {
		return "", nil, fmt.Errorf("%w: signal %x", storage.ErrCorrupt, b)
	}
	return name, value, nil
}

// signal stores a signal, and lets the run go on if it waits for it.
func (in *instance) signal(ctx context.Context, name string, value []byte) error {
	switch {
	case !in.job.Exists():
		return in.existing()
	case in.job.Meta().Status.Ended():
		return fmt.Errorf("%w: %s is %s", ErrEnded, in.st.ID(), in.job.Meta().Status)
	case len(value) > in.maxValueBytes(): // the entry that takes it could not be stored
		return final{fmt.Errorf("%w: %s: signal %q has %s: store it outside and send its name", object.ErrValueTooLarge, in.st.ID(), name, overLimit(len(value), in.maxValueBytes()))}
	case len(in.signals.sizes) >= in.d.maxSignals:
		return fmt.Errorf("%w: %s has %d: the function must take them", ErrBusy, in.st.ID(), in.d.maxSignals)
	case in.signals.bytes+len(value) > maxSignalBytes:
		return fmt.Errorf("%w: %s has %s of them: the function must take them", ErrBusy, in.st.ID(), sizeOf(in.signals.bytes))
	}
	return in.job.Turn(ctx, func(ctx context.Context) error {
		w := row.Writer(nil).Text(name)
		raw := append([]byte(w), value...)
		seq := in.signals.next
		if err := in.st.Storage().PutBytes(ctx, seqKey(signalPrefix, seq), raw); err != nil {
			return err
		}
		in.signals.add(seq, name, len(raw))
		if in.stretch != nil {
			in.stretch.came(waitSignal, name)
		}
		return nil
	})
}

// oldest returns the oldest signal of the name that waits.
func (in *instance) oldest(ctx context.Context, name string) (value []byte, seq uint64, ok bool, err error) {
	if !in.signals.has(name) {
		return nil, 0, false, nil
	}
	seq = in.signals.byName[name][0]
	raw, ok, err := in.st.Storage().Get(ctx, seqKey(signalPrefix, seq))
	if err != nil {
		return nil, 0, false, err
	}
	if !ok {
		return nil, 0, false, fmt.Errorf("%w: %s: signal %d is not stored", storage.ErrCorrupt, in.st.ID(), seq)
	}
	_, value, err = decodeSignal(raw)
	return value, seq, err == nil, err
}

// removeSignal removes a signal that was taken, in the batch that takes it.
func (in *instance) removeSignal(ctx context.Context, seq uint64) error {
	if err := in.st.Storage().Remove(ctx, seqKey(signalPrefix, seq)); err != nil {
		return err
	}
	in.signals.remove(seq)
	return nil
}

// Wait is an event or a time that a run waits for.
type Wait struct {
	Kind  string    `json:"kind"`            // sleep, retry, breaker, signal, child or each
	Name  string    `json:"name,omitempty"`  // of the step, the signal or the child; of an Each with the path of its scope
	Until time.Time `json:"until,omitzero"`  // when it goes on by itself
	Done  int       `json:"done,omitempty"`  // branches of the Each that have ended
	Total int       `json:"total,omitempty"` // all branches of the Each
}

// Kinds of waits.
const (
	waitSleep   = "sleep"
	waitRetry   = "retry"
	waitBreaker = "breaker" // the breaker of a step is open; see Through
	waitSignal  = "signal"
	waitChild   = "child"
	waitEach    = "each"
)
