package cluster

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// bubble runs f with a pulse on virtual time.
func bubble(t *testing.T, f func(t *testing.T, p *pulse)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := seam.Seams{}.WithDefaults()
		f(t, &pulse{seams: &s})
	})
}

func (p *pulse) must(t *testing.T, about string, works bool) {
	t.Helper()
	if got := p.works(); got != works {
		t.Errorf("%s: the store works: %v, want %v", about, got, works)
	}
}

// A call of the log hangs when it had no answer for ten seconds. An error that tells nothing is no answer, and an idle store works.
func TestCallsThatHang(t *testing.T) {
	bubble(t, func(t *testing.T, p *pulse) {
		p.must(t, "no call yet", true)
		p.asked()
		time.Sleep(hungAfter - 1)
		p.must(t, "a call of nearly ten seconds", true)
		p.answered(errors.New("no connection"))
		p.asked()
		time.Sleep(time.Nanosecond)
		p.must(t, "a second call after an error", false)
		p.answered(shardlog.ErrFenced)
		p.must(t, "an answer", true)
		time.Sleep(time.Hour)
		p.must(t, "an idle store", true)
		for _, err := range []error{nil, shardlog.ErrNoSpace, shardlog.ErrRefused} {
			p.asked()
			time.Sleep(hungAfter)
			p.answered(err)
			p.must(t, "an answer", true)
		}
		p.asked()
		time.Sleep(hungAfter)
		p.reset()
		p.must(t, "the next life", true)
	})
}

// slow is a view that takes a batch when it is told to.
type slow struct {
	engine.Engine
	takes chan struct{}
}

func (v slow) Apply([]byte) error { <-v.takes; return nil }

// A view that does not take a batch for ten seconds hangs, as the beats see it. One that takes other batches works.
func TestViewThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T, p *pulse) {
		v := pulsedView{slow{takes: make(chan struct{})}, p}
		for range 2 {
			go func() { _ = v.Apply(nil) }()
		}
		synctest.Wait()
		p.must(t, "a batch at its first look", true)
		time.Sleep(hungAfter - 1)
		p.must(t, "after nearly ten seconds", true)
		v.Engine.(slow).takes <- struct{}{}
		synctest.Wait()
		p.must(t, "another batch was taken", true)
		time.Sleep(hungAfter)
		p.must(t, "ten seconds later", false)
		v.Engine.(slow).takes <- struct{}{}
		synctest.Wait()
		p.must(t, "all were taken", true)
	})
}
