package workerpool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// former is an input or an output that a later version of the program cannot decode
// if it is "bad".
type former string

var errFormer = errors.New("former: this version has no such value")

func (p *former) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if *p = former(s); s == "bad" {
		return errFormer
	}
	return nil
}

// Proves W6. Case PL3. A task with an input that cannot be decoded is dead at once with
// that error. OnDead gets it, and the list has it with its raw bytes, beside the other
// letters.
func TestUndecodableInput(t *testing.T) {
	told := make(chan workerpool.DeadLetter[former], 2)
	p := workerpool.New(workerpool.Config[former, string]{
		Name: "former", Concurrency: 1, Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(0)},
		Work: func(context.Context, *workerpool.Task[former]) (string, error) { return "", errors.New("no") },
		OnDead: func(_ context.Context, d workerpool.DeadLetter[former]) error {
			told <- d
			return nil
		},
	})
	h := inMemory(t, object.Options{}, p)
	must(p.EnqueueBatch(ctx, h, []workerpool.Item[former]{{In: "bad"}, {In: "good"}}))
	if err := p.Drain(ctx, h); err != nil {
		t.Fatal(err)
	}
	letters, err := p.DeadLetters(ctx, h, workerpool.TaskID{}, 10)
	if err != nil || len(letters) != 2 {
		t.Fatalf("letters %+v, %v", letters, err)
	}
	bad, good := letters[0], letters[1]
	if string(bad.Raw) != `"bad"` || !strings.Contains(bad.DecodeError, errFormer.Error()) || bad.In != "" || bad.Reason != jobs.ReasonNotRetryable {
		t.Errorf("the letter that cannot be decoded is %+v", bad)
	}
	if n := len(bad.Failures); n != 1 || !strings.Contains(bad.Failures[0].Error, errFormer.Error()) {
		t.Errorf("it was tried %d times: %+v", n, bad.Failures)
	}
	if good.In != "good" || good.Raw != nil || good.DecodeError != "" || len(good.Failures) != 2 {
		t.Errorf("the other letter is %+v", good)
	}
	seen := map[uint64]bool{}
	for range 2 {
		seen[(<-told).ID.Number] = true
	}
	if !seen[bad.ID.Number] {
		t.Errorf("OnDead was told of %v only", seen)
	}
}

// Proves W6. A claim passes over a task with an input that cannot be decoded, which is
// dead, and gives the next one.
func TestUndecodableClaim(t *testing.T) {
	p := workerpool.New(workerpool.Config[former, string]{Name: "former", Concurrency: 2})
	h := inMemory(t, object.Options{}, p)
	refs := must(p.EnqueueBatch(ctx, h, []workerpool.Item[former]{{In: "bad"}, {In: "good"}}))
	claims, err := p.Claim(ctx, h, 1, 0)
	if err != nil || len(claims) != 1 || claims[0].Task.In != "good" {
		t.Fatalf("claims %+v, %v", claims, err)
	}
	if info := must(p.Status(ctx, h, refs[0].ID)); info.State != workerpool.Dead || len(info.Failures) != 1 {
		t.Errorf("the other task is %+v", info)
	}
	if err := p.Ack(ctx, h, claims[0].Lease, ""); err != nil {
		t.Error(err)
	}
}

// Proves W6. If the output of a task cannot be decoded, its status says so, with the raw
// output, and Wait fails.
func TestUndecodableOutput(t *testing.T) {
	p := workerpool.New(workerpool.Config[string, former]{
		Name: "former", Work: func(context.Context, *workerpool.Task[string]) (former, error) { return "bad", nil },
	})
	h := inMemory(t, object.Options{}, p)
	ref := must(p.Enqueue(ctx, h, "in"))
	if _, err := p.Wait(ctx, h, ref.ID); err == nil || !strings.Contains(err.Error(), errFormer.Error()) {
		t.Errorf("wait ended with %v", err)
	}
	info := must(p.Status(ctx, h, ref.ID))
	if info.State != workerpool.Done || string(info.Raw) != `"bad"` || info.Result != "" || info.DecodeError == "" {
		t.Errorf("status %+v", info)
	}
}

// metric is the value of a metric of the host, summed over the series with the labels.
// The value of a histogram is its count.
func metric(t testing.TB, h *object.Host, name string, labels map[string]string) (sum float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(h.Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	series:
		for _, m := range f.GetMetric() {
			have := map[string]string{}
			for _, l := range m.GetLabel() {
				have[l.GetName()] = l.GetValue()
			}
			for k, v := range labels {
				if have[k] != v {
					continue series
				}
			}
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// Proves J8. Case PL4. Each use of an old lease is refused and counted.
func TestStaleLeasesAreCounted(t *testing.T) {
	p := workerpool.New(config{Name: "claims"})
	h := inMemory(t, object.Options{}, p)
	must(p.Enqueue(ctx, h, "a"))
	old := must(p.Claim(ctx, h, 1, 0))[0].Lease
	if err := p.Ack(ctx, h, old, ""); err != nil {
		t.Fatal(err)
	}
	for i, use := range []func() error{
		func() error { return p.Ack(ctx, h, old, "") },
		func() error { return p.Nack(ctx, h, old, nil) },
		func() error { _, err := p.Heartbeat(ctx, h, old); return err },
	} {
		if err := use(); !errors.Is(err, jobs.ErrStaleExecution) {
			t.Errorf("use %d of an old lease: %v", i, err)
		}
		if n := metric(t, h, "holdfast_executions_total", map[string]string{"outcome": "stale"}); n != float64(i+1) {
			t.Errorf("%v stale tokens are counted after %d uses", n, i+1)
		}
	}
}

// Case PL5. The exported results have names in camel case and states as text. Decoded,
// they are equal to the originals.
func TestResultsAsJSON(t *testing.T) {
	info := workerpool.Status[string]{
		ID: workerpool.TaskID{Partition: 1, Number: 2}, State: workerpool.Dead, Key: "k", Attempt: 3, Result: "r",
		Failures: []workerpool.Failure{{Attempt: 1, Error: "e"}},
	}
	for _, c := range []struct {
		v    any
		want []string
	}{
		{info, []string{`"id":"1-2"`, `"state":"dead"`, `"key":"k"`, `"attempt":3`, `"failures":[{"attempt":1,`}},
		{workerpool.Stats{Mode: workerpool.Paused, Submitted: 1}, []string{`"mode":"paused"`, `"submitted":1`}},
		{workerpool.DeadLetter[string]{In: "i", Reason: jobs.ReasonAttempts}, []string{`"in":"i"`, `"reason":"attempts"`}},
		{workerpool.TaskRef{Repeated: true}, []string{`"repeated":true`}},
		{workerpool.Claim[string]{}, []string{`"lease":{"id":`, `"task":{"id":`}},
	} {
		b := string(must(json.Marshal(c.v)))
		for _, want := range c.want {
			if !strings.Contains(b, want) {
				t.Errorf("%T is %s, want %s in it", c.v, b, want)
			}
		}
	}
	var back workerpool.Status[string]
	if err := json.Unmarshal(must(json.Marshal(info)), &back); err != nil || back.State != info.State || back.ID != info.ID {
		t.Errorf("decoded %+v, %v", back, err)
	}
	var mode workerpool.Mode
	if err := json.Unmarshal([]byte(`"closed"`), &mode); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("a mode that there is not: %v", err)
	}
}
