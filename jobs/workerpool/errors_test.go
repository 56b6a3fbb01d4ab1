package workerpool_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves O12, Case JB10: the error of Open against a definition names one package, and the class
// once, for a mistake in any of its parts; so do the errors of verbs.
func TestErrorsNameOnePackage(t *testing.T) {
	texts := make(map[string]error)
	for want, c := range map[string]config{
		"workerpool: invalid: Name is empty":                                     {},
		"workerpool pool: invalid: Concurrency 2 is less than Partitions 3":      {Name: "pool", Concurrency: 2, Partitions: 3},
		"workerpool pool: invalid: Timeout must not be negative: -1ns":           {Name: "pool", Timeout: -1},
		"workerpool pool: invalid: Version \"\\xff\" is not UTF-8":               {Name: "pool", Version: "\xff"},
		"workerpool pool: invalid: weight of queue \"q\" must be from 1 to 1000": {Name: "pool", Queues: map[string]int{"q": 0}},
	} {
		_, texts[want] = object.Open(object.Options{Dir: t.TempDir()}, workerpool.New(c))
	}
	p := workerpool.New(config{Name: "pool"})
	h := inMemory(t, object.Options{}, p)
	_, texts["workerpool: invalid: no queue is named \"q\": name it in Config.Queues"] = p.Enqueue(ctx, h, "", workerpool.Queue("q"))
	_, texts["workerpool: invalid: the delay must not be negative: -1ns"] = p.Enqueue(ctx, h, "", workerpool.Delay(-1))
	_, texts["workerpool: invalid: 10001 tasks in a batch, the most are 10000"] = p.EnqueueBatch(ctx, h, make([]workerpool.Item[string], 10_001))
	_, texts["workerpool: invalid: lease -1ns is negative"] = p.Claim(ctx, h, 1, -1)
	_, texts["workerpool: invalid: task id \"7\" is not of the form 0-17"] = workerpool.ParseTaskID("7")
	texts["workerpool: invalid: state \"closed\""] = json.Unmarshal([]byte(`"closed"`), new(workerpool.State))
	for want, err := range texts {
		if err == nil || err.Error() != want || !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("error %q, want %q", err, want)
		}
	}
}
