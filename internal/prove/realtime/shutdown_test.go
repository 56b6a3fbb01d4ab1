package realtime

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// watch follows the events of an object, which count up, until the host ends.
func (tr *traffic) watch(h *object.Host, name string) {
	n := 0
	for e, err := range h.Watch(context.Background(), tr.busy.ID(name), 0) {
		n++
		switch {
		case err != nil && !errors.Is(err, object.ErrShutdown):
			tr.t.Errorf("watch of %s ends with %v", name, err)
		case err == nil && string(e.Data) != strconv.Itoa(n):
			tr.t.Errorf("watch of %s: event %d tells of %s", name, n, e.Data)
		}
	}
}

// Proves O8, O9, O14, J9, D2, W2: a host is shut down while calls, alarms, works, runs,
// flushes, tasks and watches are under way, whether they may end or are interrupted.
// All of them end, no acknowledged write is lost, and the interruption costs no
// attempt.
func TestShutdownWithAllInFlight(t *testing.T) {
	for disk, open := range map[string]func() disk{"map": newMapDisk, "pebble": newPebbleDisk} {
		t.Run(disk, func(t *testing.T) {
			for seed := range uint64(*rounds) {
				synctest.Test(t, func(t *testing.T) { shutDownInTraffic(t, open(), seed) })
			}
		})
	}
}

func shutDownInTraffic(t *testing.T, d disk, seed uint64) {
	tr := newTraffic(t, seed)
	m := newMachine(t, d, tr.definitions()...)
	for range 3 {
		tr.start(m.host)
		time.Sleep(tr.below(2 * time.Second))
		tr.shutDown(m.host, seed)
		tr.clients.Wait()
		m.open()
	}
	time.Sleep(2 * time.Minute)
	tr.verify(m.host)
	m.close()
}

// shutDown ends a host that is under way, with a context that lasts as the seed has it.
func (tr *traffic) shutDown(h *object.Host, seed uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), []time.Duration{0, 100 * time.Millisecond, time.Hour}[seed%3])
	defer cancel()
	first := make(chan error, 1)
	tr.clients.Go(func() { first <- h.Shutdown(ctx) })
	synctest.Wait()
	select {
	case <-h.Done():
	default:
		if err := h.Shutdown(ended()); !errors.Is(err, context.Canceled) {
			tr.t.Errorf("a second Shutdown that may not wait: %v", err)
		}
	}
	err := h.Shutdown(context.Background())
	if got := <-first; got != nil || err != nil {
		tr.t.Errorf("Shutdown: %v, and a later call that waits: %v", got, err)
	}
	select {
	case <-h.Done():
	default:
		tr.t.Error("the host has not ended after Shutdown")
	}
}

// verify compares the store with the answers of the clients.
func (tr *traffic) verify(h *object.Host) {
	t, ctx := tr.t, context.Background()
	for name, c := range tr.told {
		n, err := tr.do.Call(ctx, h, name, errand{how: "look"})
		if err != nil || n < c.acknowledged || n > c.acknowledged+c.unknown {
			t.Errorf("%s counts %d, want %d to %d: %v", name, n, c.acknowledged, c.acknowledged+c.unknown, err)
		}
	}
	st, err := tr.runs.Status(ctx, h, "it")
	state, stateErr := tr.runs.State(ctx, h, "it")
	if err != nil || stateErr != nil || uint64(state) != st.Meta.RunCount || state < 200 || st.Meta.Failures+st.Meta.RecoveryAttempts != 0 {
		t.Errorf("continuous: %d runs, %+v, %v, %v", state, st.Meta, err, stateErr)
	}
	buffer, err := tr.calls.Status(ctx, h, "it")
	if err != nil || buffer.Meta.Status == jobs.Failed || buffer.Events+buffer.Flushing != 0 {
		t.Errorf("debounce: %+v, %v", buffer, err)
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for e := range tr.events {
		if tr.flushed[e] == "" {
			t.Errorf("event %s was acknowledged and not flushed", e)
		}
	}
	for id := range tr.tickets {
		if task, err := tr.tasks.Status(ctx, h, id); err != nil || task.State != workerpool.Done {
			t.Errorf("task %v: %+v, %v", id, task, err)
		}
	}
}

// Proves O14, R4: a run that an orderly shutdown cut off costs no recovery. That holds
// too if the next processes shut down in order before they recover the run.
func TestShutdownsBeforeRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		executions := 0
		j := continuous.New(continuous.Config[int]{
			Name: "slow", Schedule: jobs.Every(time.Hour), MaxRecoveries: -1,
			Run: func(ctx context.Context, run *continuous.Run[int]) error {
				if executions++; executions > 1 {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			},
		})
		m := newMachine(t, newMapDisk(), j)
		if _, err := j.Start(t.Context(), m.host, "it", 0); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			time.Sleep(10 * time.Millisecond)
			_ = m.host.Shutdown(ended()) // it cuts off the run that is under way
			m.open()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		st, err := j.Status(t.Context(), m.host, "it")
		if err != nil || executions != 2 || st.Meta.RunCount != 1 || st.Meta.Status == jobs.Failed {
			t.Errorf("%d executions, %+v: %v", executions, st.Meta, err)
		}
		if lines, _ := m.host.Recoveries(); len(lines) != 1 || lines[0].Cause != "shutdown" || lines[0].Attempt != 0 {
			t.Errorf("recoveries: %+v", lines)
		}
		m.close()
	})
}
