package object_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// explain is the explanation of a thing.
func (f *fixture) explain(name string) object.Explanation {
	f.t.Helper()
	e, err := f.host.Explain(context.Background(), f.id(name))
	if err != nil {
		f.t.Fatal(err)
	}
	return e
}

func TestExplainTheTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.end()
		gate := make(chan struct{})
		go f.call("a", func(*thing, context.Context) (any, error) { <-gate; return nil, nil })
		pass(time.Second)
		if e := f.explain("a"); e.Turn == nil || e.Turn.Method != "do" || !e.Live {
			t.Errorf("%+v", e)
		}
		close(gate)
		pass(0)
		if e := f.explain("a"); e.Turn != nil || !e.Live {
			t.Errorf("%+v", e)
		}
	})
}
