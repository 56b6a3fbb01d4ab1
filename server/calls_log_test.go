package server

import (
	"testing"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// Proves V4: a call that has committed when another process takes the log over has an unknown outcome, and is to be repeated
// only under a key. One that only reads has left nothing.
func TestCallsWhenTheLogIsTakenOver(t *testing.T) {
	for _, c := range []struct {
		method, arg string
		key         []string
		want        problem
	}{
		{"add", "1", nil, problem{Type: "outcome-unknown", Status: 504, Outcome: unknown}},
		{"add", "1", []string{"Idempotency-Key", "k"}, problem{Type: "outcome-unknown", Status: 504, Outcome: unknown, Retryable: true}},
		{"get", "", nil, problem{Type: "storage-failed", Status: 503, Outcome: unknown}},
	} {
		log := memlog.New()
		engine, err := shardlog.Open(shardlog.Options{Log: log}, memstore.New())
		if err != nil {
			t.Fatal(err)
		}
		class := cartClass(newGates())
		f := startOn(t, object.Options{Storage: storage.Options{Engine: engine}}, exposeCarts(class), class)
		if a := f.call("a", "add", "1"); a.body != "1" {
			t.Fatalf("before: %+v", a)
		}
		if _, err := log.Claim(t.Context(), 0, "another", 1); err != nil {
			t.Fatal(err)
		}
		a := f.call("a", c.method, c.arg, c.key...)
		if p := a.problem(t); p.Type != c.want.Type || p.Status != c.want.Status || p.Outcome != c.want.Outcome || p.Retryable != c.want.Retryable {
			t.Errorf("V4: %s: %+v, want %+v", c.method, p, c.want)
		}
	}
}
