package queue

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
)

// memory is a queue in memory: a job is done when it is both due and the workers
// have started.
type memory struct {
	*Tracker
	mu      sync.Mutex
	started bool
	waiting []int
	starts  int
	done    int
}

func (m *memory) Start(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.started = true
	m.starts++
	for _, job := range m.waiting {
		m.finish(job)
	}
	m.waiting = nil
	return nil
}

func (m *memory) Stop(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.started = false
	return nil
}

func (m *memory) finish(job int) {
	m.done++
	m.Done(job)
}

func (m *memory) Enqueue(_ context.Context, job int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.started {
		m.finish(job)
	} else {
		m.waiting = append(m.waiting, job)
	}
	return nil
}

func (m *memory) Fill(ctx context.Context, n int, due time.Time) error {
	for range n {
		if due.IsZero() {
			if err := m.Enqueue(ctx, -1); err != nil {
				return err
			}
			continue
		}
		time.AfterFunc(time.Until(due), func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.finish(-1)
		})
	}
	return nil
}

// TestMeasure gives a queue each workload, once, and has a figure of each.
func TestMeasure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures")
	flags := flag.NewFlagSet("", flag.PanicOnError)
	r := figure.Flags(flags)
	if err := flags.Parse([]string{"-figures", path, "-system", "memory"}); err != nil {
		t.Fatal(err)
	}
	m := &memory{Tracker: &Tracker{}}
	load := Load{For: 10 * time.Millisecond, Jobs: 300, Alarms: 50, Lead: time.Second}
	if err := Measure(t.Context(), m, m.Tracker, load, r); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	figures, err := figure.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"awaited": Callers, "through": 300, "backlog": 300, "alarms": 50, "late": 50}
	for _, f := range figures {
		if want[f.Workload] != f.N || f.Value <= 0 || f.Name != "memory" {
			t.Errorf("%+v", f)
		}
		delete(want, f.Workload)
	}
	if len(want) > 0 {
		t.Errorf("no figure of %v", want)
	}
	if m.starts != 4 || m.done < 650 {
		t.Errorf("%d starts, %d jobs done", m.starts, m.done)
	}
}
