package workerpool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// outside is a pool without a Work, its host, and its verbs by name.
type outside struct {
	*testing.T
	pool *workerpool.Pool[int, string]
	host *object.Host
}

func newOutside(t *testing.T) outside {
	t.Helper()
	pool := workerpool.New(workerpool.Config[int, string]{Name: "prints", Partitions: 3, Lease: time.Hour, Retry: jobs.Retry{MaxAttempts: 9}})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, pool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return outside{t, pool, host}
}

// do runs a verb, with the values of format in its argument.
func (o outside) do(id, verb, format string, values ...any) ([]byte, error) {
	return o.pool.Verbs().Do(o.Context(), o.host, id, verb, fmt.Appendf(nil, format, values...))
}

// claim claims tasks.
func (o outside) claim(arg string) (claims []workerpool.Claim[int]) {
	o.Helper()
	raw, err := o.do("", "claim", "%s", arg)
	if err == nil {
		err = json.Unmarshal(raw, &claims)
	}
	if err != nil || raw[0] != '[' {
		o.Fatal(string(raw), err)
	}
	return claims
}

// lease is the JSON of the lease of a claim.
func (o outside) lease(c workerpool.Claim[int]) (id, text string) {
	raw, err := json.Marshal(c.Lease)
	if err != nil {
		o.Fatal(err)
	}
	return c.Lease.ID.String(), string(raw)
}

// Proves G1: an outside worker claims, extends and ends tasks by name.
func TestOutsideWorkerByName(t *testing.T) {
	o := newOutside(t)
	raw, err := o.do("", "enqueueBatch", `[{"in": 1}, {"in": 2, "key": "k", "idempotent": "once"}, {"in": 3}, {"in": 4}]`)
	refs := []workerpool.TaskRef{}
	if err == nil {
		err = json.Unmarshal(raw, &refs)
	}
	if err != nil || len(refs) != 4 || refs[3].ID == (workerpool.TaskID{}) {
		t.Fatalf("%s: %v", raw, err)
	}
	claims := o.claim("")
	if len(claims) != 1 {
		t.Fatalf("a claim without an argument has %d tasks", len(claims))
	}
	claims = append(claims, o.claim(`{"n": 9, "lease": "2m"}`)...)
	if len(claims) != 4 || claims[0].For != 0 || claims[1].For != 2*time.Minute || claims[1].Task.In == 0 {
		t.Fatalf("%+v", claims)
	}
	if none := o.claim(""); len(none) != 0 {
		t.Errorf("claimed again: %+v", none)
	}

	id, lease := o.lease(claims[1])
	raw, err = o.do(id, "heartbeat", `{"lease": %s}`, lease)
	longer := workerpool.Lease{}
	if err == nil {
		err = json.Unmarshal(raw, &longer)
	}
	if err != nil || longer.Token != claims[1].Token || longer.For != 2*time.Minute || !longer.Until.After(claims[1].Until) {
		t.Errorf("heartbeat: %s, %v", raw, err)
	}
	if _, err := o.do(id, "ack", `{"lease": %s, "out": "printed"}`, raw); err != nil {
		t.Error(err)
	}
	if out, err := o.pool.Wait(t.Context(), o.host, longer.ID); out != "printed" || err != nil {
		t.Error(out, err)
	}
	for _, verb := range []string{"heartbeat", "ack", "nack"} {
		arg := `{"lease": ` + lease + `}`
		if _, err := o.do(id, verb, "%s", arg); !errors.Is(err, jobs.ErrStaleExecution) {
			t.Errorf("%s after the end: %v", verb, err)
		}
	}
	o.nacks(claims)
}

// nacks ends the attempts of three claims.
func (o outside) nacks(claims []workerpool.Claim[int]) {
	status := func(c workerpool.Claim[int]) workerpool.Status[string] {
		s, err := o.pool.Status(o.Context(), o.host, c.Lease.ID)
		if err != nil {
			o.Fatal(err)
		}
		return s
	}
	nack := func(c workerpool.Claim[int], how string) workerpool.Status[string] {
		id, lease := o.lease(c)
		if _, err := o.do(id, "nack", `{"lease": %s%s}`, lease, how); err != nil {
			o.Error(err)
		}
		return status(c)
	}
	if s := nack(claims[0], `, "error": "torn", "permanent": true`); s.State != workerpool.Dead || s.Failures[0].Error != "torn" {
		o.Errorf("permanent: %+v", s)
	}
	if s := nack(claims[2], `, "after": "1h"`); s.State != workerpool.Pending || s.NotBefore.Sub(s.Enqueued) < time.Hour || s.Failures[0].Error != "nack" {
		o.Errorf("after: %+v", s)
	}
	if s := nack(claims[3], `, "snooze": "1h"`); s.State != workerpool.Pending || s.NotBefore.Sub(s.Enqueued) < time.Hour || len(s.Failures) != 0 {
		o.Errorf("snooze: %+v", s)
	}
}

// Proves G1: an argument that the verbs of outside workers do not take is refused, on both sides of
// each bound, and the lease stays as it is.
func TestOutsideMistakesByName(t *testing.T) {
	o := newOutside(t)
	many := func(n int) string { return "[" + strings.Repeat(`{"in": 1}, `, n-1) + `{"in": 1}]` }
	if _, err := o.do("", "enqueueBatch", "%s", many(10_001)); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("10,001 tasks: %v", err)
	}
	if _, err := o.do("", "enqueueBatch", "%s", many(10_000)); err != nil {
		t.Errorf("10,000 tasks: %v", err)
	}
	for _, arg := range []string{`{"n": -1}`, `{"n": 10001}`, `{"lease": "-1s"}`, `{"lease": "24h0m0.000000001s"}`, `{"lease": "1"}`, `{"lease": 1}`} {
		if _, err := o.do("", "claim", "%s", arg); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("claim %s: %v", arg, err)
		}
	}
	c := o.claim(`{"n": 1, "lease": "24h"}`)[0]
	rest := o.claim(`{"n": 10000}`)
	if len(rest) < 2 {
		t.Fatal("claimed no more")
	}
	id, lease := o.lease(c)
	for _, how := range []string{`"snooze": "1s", "error": "x"`, `"snooze": "1s", "after": "1s"`, `"snooze": "1s", "permanent": true`, `"permanent": true, "after": "1s"`, `"after": "-1s"`, `"snooze": "-1s"`, `"after": "soon"`, `"after": "876600h0m0.000000001s"`, `"snooze": "876600h0m0.000000001s"`} {
		if _, err := o.do(id, "nack", `{"lease": %s, %s}`, lease, how); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("nack %s: %v", how, err)
		}
	}
	other := c
	other.Lease.ID.Number += 1000
	otherID, _ := o.lease(other)
	for _, verb := range []string{"heartbeat", "ack", "nack"} {
		for _, of := range []string{otherID, "x"} {
			if _, err := o.do(of, verb, `{"lease": %s}`, lease); !errors.Is(err, jobs.ErrInvalid) {
				t.Errorf("%s of %s: %v", verb, of, err)
			}
		}
	}
	for _, length := range []string{"-1", "86400000000001"} {
		if _, err := o.do(id, "heartbeat", "%s", strings.Replace(`{"lease": `+lease+`}`, `"forNs":86400000000000`, `"forNs":`+length, 1)); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("a lease of %s ns: %v", length, err)
		}
	}
	if _, err := o.do(id, "heartbeat", `{"lease": %s}`, lease); err != nil {
		t.Errorf("a lease of 24 h: %v", err)
	}
	for _, how := range []string{`"after": "876600h"`, `"snooze": "876600h"`} {
		id, lease := o.lease(rest[0])
		rest = rest[1:]
		if _, err := o.do(id, "nack", `{"lease": %s, %s}`, lease, how); err != nil {
			t.Errorf("nack %s: %v", how, err)
		}
	}
	if _, err := o.do(id, "ack", `{"lease": %s, "out": "x"}`, lease); err != nil {
		t.Errorf("after the mistakes: %v", err)
	}
}
