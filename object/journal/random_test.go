package journal_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/journal"
)

// model draws the deeds of a run. Each has a number of its own, so that a journal that was
// emptied does not look as before.
type model struct{ next int }

// draw returns some deeds, of which one may be bad.
func (m *model) draw(rt *rapid.T, most int) (deeds []deed, bad bool) {
	for range rapid.IntRange(1, most).Draw(rt, "events") {
		m.next++
		deeds = append(deeds, the(m.next))
	}
	if kind := rapid.SampledFrom([]string{"", "", "", "fails", "panics"}).Draw(rt, "bad"); kind != "" {
		deeds[rapid.IntRange(0, len(deeds)-1).Draw(rt, "which")].Bad, bad = kind, true
	}
	return deeds, bad
}

// program is a part of a turn: the operation, and what becomes of the list by it.
type program struct {
	run   func(b *book, ctx context.Context) error
	list  []deed
	syncs bool // a part of it may be stored without the rest
}

// part draws a part of a turn that begins with a list: an append, a Transaction, a DeleteAll,
// or a Sync where the turn is not in a Transaction.
func (m *model) part(rt *rapid.T, list []deed, depth int) program {
	kinds := []string{"append", "append", "append", "empty", "tx", "undone", "sync"}
	switch kind := rapid.SampledFrom(kinds).Draw(rt, "part"); {
	case kind == "empty":
		return program{func(b *book, ctx context.Context) error { return b.st.Storage().DeleteAll(ctx) }, nil, false}
	case kind == "sync" && depth == 0:
		return program{func(b *book, ctx context.Context) error { return b.st.Sync(ctx) }, list, true}
	case (kind == "tx" || kind == "undone") && depth < 2:
		inner := m.turn(rt, list, depth+1)
		after := inner.list
		if kind == "undone" {
			after = list
		}
		return program{func(b *book, ctx context.Context) error {
			err := b.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
				if err := inner.run(b, ctx); err != nil || kind == "tx" {
					return err
				}
				return errBad
			})
			if kind == "undone" && errors.Is(err, errBad) {
				return nil
			}
			return err
		}, after, false}
	}
	deeds, bad := m.draw(rt, 5)
	after := list
	if !bad {
		after = append(list[:len(list):len(list)], deeds...)
	}
	return program{func(b *book, ctx context.Context) error {
		err := b.j.Append(ctx, deeds...)
		if bad && errors.Is(err, errBad) {
			return nil
		}
		return err
	}, after, false}
}

// turn draws some parts, each of which is checked.
func (m *model) turn(rt *rapid.T, list []deed, depth int) program {
	var parts []program
	syncs := false
	for range rapid.IntRange(1, 3).Draw(rt, "parts") {
		parts = append(parts, m.part(rt, list, depth))
		list, syncs = parts[len(parts)-1].list, syncs || parts[len(parts)-1].syncs
	}
	return program{func(b *book, ctx context.Context) error {
		for _, p := range parts {
			if err := p.run(b, ctx); err != nil {
				return err
			}
			if err := matches(b, p.list); err != nil {
				return err
			}
		}
		return nil
	}, list, syncs}
}

// matches compares memory with a list.
func matches(b *book, list []deed) error {
	if want := folded(list...); b.j.Seq() != uint64(len(list)) || !same(b.j.State(), want) {
		return object.Permanent(fmt.Errorf("after %d events memory has %+v, want %d and %+v", b.j.Seq(), b.j.State(), len(list), want))
	}
	return nil
}

// pastMatches compares At and Since at a place of the past with a list.
func pastMatches(b *book, ctx context.Context, list []deed, seq, keep int) error {
	at, err := b.j.At(ctx, uint64(seq))
	if errors.Is(err, journal.ErrTrimmed) && len(list)-seq > keep {
		return nil
	}
	if err != nil || !same(at, folded(list[:seq]...)) {
		return fmt.Errorf("as of event %d of %d the state is %+v, %v", seq, len(list), at, err)
	}
	for e, err := range b.j.Since(ctx, uint64(seq)) {
		if seq++; err != nil || seq > len(list) || e.Seq != uint64(seq) || e.Event != list[seq-1] {
			return fmt.Errorf("event %d is %+v, %v", seq, e, err)
		}
	}
	if seq != len(list) {
		return fmt.Errorf("the events end with %d, want %d", seq, len(list))
	}
	return nil
}

// Proves E1 and E3: random turns of appends, Transactions, deletions and failures over random
// deploys, with crashes, against a plain list.
func TestRandomProgram(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		m := &model{}
		var list []deed
		keep := math.MaxInt // the least Keep of any code so far
		code := func() *books {
			o := options{SnapshotEvery: rapid.IntRange(1, 6).Draw(rt, "every"), Keep: rapid.SampledFrom([]int{-1, -1, 3, 0}).Draw(rt, "keep")}
			if o.Keep >= 0 {
				keep = min(keep, o.Keep)
			}
			return newBooks(o)
		}
		b := code()
		s.Host(b.class)
		for i := range rapid.IntRange(1, 8).Draw(rt, "turns") {
			key := strconv.Itoa(i)
			switch rapid.SampledFrom([]string{"turn", "turn", "turn", "turn", "failed", "deploy", "past"}).Draw(rt, "step") {
			case "deploy":
				b = code()
				s.Restart(harness.WithCode(b.class))
			case "past":
				seq, now := rapid.IntRange(0, len(list)).Draw(rt, "seq"), list
				does(s, b, key, func(b *book, ctx context.Context) (any, error) { return nil, pastMatches(b, ctx, now, seq, keep) })
			case "failed":
				deeds, _ := m.draw(rt, 4)
				_, err := b.do.Call(s.Context(), s, "b", func(b *book, ctx context.Context) (any, error) {
					return nil, errors.Join(b.j.Append(ctx, deeds...), errBad)
				})
				s.Always("it failed", err != nil)
			default:
				p := m.turn(rt, list, 0)
				does(s, b, key, func(b *book, ctx context.Context) (any, error) {
					if err := matches(b, list); err != nil {
						if !p.syncs {
							return nil, err
						}
						// A crash came after a Sync in the middle of this turn.
						return nil, errors.Join(b.st.Storage().DeleteAll(ctx), b.j.Append(ctx, p.list...))
					}
					return nil, p.run(b, ctx)
				})
				list = p.list
			}
		}
		s.Finally("memory has the list", func() error {
			return s.Retry(func() error {
				_, err := b.do.Call(s.Context(), s, "b", func(b *book, _ context.Context) (any, error) { return nil, matches(b, list) })
				return err
			})
		})
	}, harness.NoLostAck, harness.NoTornBatch, harness.Shards(1))
}
