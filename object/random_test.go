package object_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// sheet is an object that runs a list of entries, drawn at random, in each turn.
type sheet struct{ st *object.State }

// entry is one thing that a turn does.
type entry struct {
	Do    string
	Key   string
	Value int
	Due   time.Time
}

var errDrawn = errors.New("drawn")

func (x *sheet) write(ctx context.Context, entries []entry) (int, error) {
	for _, e := range entries {
		if err := x.do(ctx, e); err != nil {
			return 0, err
		}
	}
	return len(entries), nil
}

func (x *sheet) do(ctx context.Context, e entry) error {
	switch e.Do {
	case "put":
		return x.st.Storage().Put(ctx, e.Key, e.Value)
	case "delete":
		_, err := x.st.Storage().Delete(ctx, e.Key)
		return err
	case "deleteAll":
		return x.st.Storage().DeleteAll(ctx)
	case "setAlarm":
		return x.st.SetAlarm(ctx, e.Due)
	case "deleteAlarm":
		return x.st.DeleteAlarm(ctx)
	case "sync":
		return x.st.Sync(ctx)
	default:
		return errDrawn
	}
}

// Alarm counts itself.
func (x *sheet) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	var fired int
	if _, err := x.st.Storage().GetInto(ctx, "fired", &fired); err != nil {
		return err
	}
	return x.st.Storage().Put(ctx, "fired", fired+1)
}

var (
	sheets     = object.Define("sheet", func(_ context.Context, st *object.State) (*sheet, error) { return &sheet{st}, nil })
	sheetWrite = object.Handle(sheets, "write", (*sheet).write)
)

// paper is the model of a sheet: the rows that it must hold.
type paper struct {
	rows map[string]int
	due  time.Time // of the alarm; zero: none
}

// write applies a turn that is not cut off to the model.
func (p *paper) write(entries []entry) {
	for _, e := range entries {
		switch e.Do {
		case "put":
			p.rows[e.Key] = e.Value
		case "delete":
			delete(p.rows, e.Key)
		case "deleteAll":
			clear(p.rows)
			p.due = time.Time{}
		case "setAlarm":
			p.due = e.Due
		case "deleteAlarm":
			p.due = time.Time{}
		}
	}
}

// pass applies the alarm to the model, if its time has come.
func (p *paper) pass(now time.Time) {
	if !p.due.IsZero() && p.due.Before(now) {
		p.due = time.Time{}
		p.rows["fired"]++
	}
}

// compare says how the stored sheet differs.
func (p *paper) compare(s *harness.Sim, name string) error {
	store, id := s.Store(), sheets.ID(name)
	for _, key := range []string{"a", "b", "c", "fired"} {
		var got int
		ok, err := harness.Stored(store, id, key, &got)
		if want, has := p.rows[key]; err != nil || ok != has || got != want {
			return fmt.Errorf("%s holds %s = %d (%t, %v), want %d (%t)", name, key, got, ok, err, want, has)
		}
	}
	o, err := store.Find(id)
	if err != nil {
		return err
	}
	row, armed, err := store.Alarm(o)
	if err != nil || armed == p.due.IsZero() {
		return fmt.Errorf("%s has an alarm: %t (%v), want one at %v", name, armed, err, p.due)
	}
	if !armed {
		return nil
	}
	r, err := alarm.DecodeRow(row)
	if err != nil || !r.Due.Equal(p.due) {
		return fmt.Errorf("%s has its alarm at %v (%v), want %v", name, r.Due, err, p.due)
	}
	return nil
}

// Proves O6, S2, S3, S5, A1, A2, A4: random turns leave the store as a model of them
// says, after each answer, through crashes at random points and restarts. A turn that
// fails stores nothing.
func TestRandomTurns(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		s.Host(sheets)
		papers := map[string]*paper{"x": {rows: map[string]int{}}, "y": {rows: map[string]int{}}}
		names := rapid.SampledFrom([]string{"x", "y"})
		for n := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"write", "write", "write", "wait", "sleep", "restart"}).Draw(rt, "step") {
			case "write":
				name := names.Draw(rt, "name")
				entries := drawEntries(rt, s.Now())
				err := s.Retry(func() error {
					_, err := sheetWrite.Call(s.Context(), s, name, entries, object.Idempotent(fmt.Sprint(n), time.Hour))
					return err
				})
				if err == nil {
					papers[name].write(entries)
				} else if !errors.Is(err, errDrawn) {
					s.Errorf("write: %v", err)
				}
			case "wait": // never as far as an alarm
				s.Advance(time.Duration(rapid.IntRange(0, 30).Draw(rt, "seconds")) * time.Second)
			case "sleep": // beyond any
				s.Advance(time.Hour)
			case "restart":
				s.Restart()
			}
			for name, p := range papers {
				p.pass(s.Now())
				if err := p.compare(s, name); err != nil {
					s.Errorf("after step %d: %v", n, err)
				}
			}
		}
	}, harness.NoLostAck, harness.NoTornBatch, harness.OneAlarm)
}

// drawEntries draws a turn. One that syncs on its way does not fail, because synced
// writes stay.
func drawEntries(rt *rapid.T, now time.Time) []entry {
	verbs := []string{"put", "put", "delete", "deleteAll", "setAlarm", "deleteAlarm", "sync"}
	if rapid.IntRange(0, 4).Draw(rt, "fails") == 0 {
		verbs[len(verbs)-1] = "fail"
	}
	entries := make([]entry, rapid.IntRange(1, 4).Draw(rt, "entries"))
	for i := range entries {
		entries[i] = entry{
			Do:    rapid.SampledFrom(verbs).Draw(rt, "do"),
			Key:   rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key"),
			Value: rapid.IntRange(0, 9).Draw(rt, "value"),
			Due:   now.Add(time.Duration(rapid.IntRange(10, 20).Draw(rt, "minutes")) * time.Minute),
		}
	}
	return entries
}
