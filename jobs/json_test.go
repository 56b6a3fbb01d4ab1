package jobs_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/timers"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
)

// Proves J2. The facts of a host that a program shows have keys in camelCase as JSON, names for its states
// and texts for its errors. A new field without a tag fails here.
func TestFactsOfAHostAsJSON(t *testing.T) {
	at := time.Unix(1, 0).UTC()
	id := storage.ID{Class: "c", Name: "n"}
	why := errors.New("why")
	camel := regexp.MustCompile(`^[a-z][A-Za-z]*(,omit(empty|zero))?$`)
	for want, fact := range map[string]any{
		`{"lines":null,"total":2}`:                                       recovery.Report{Total: 2},
		`{"id":{"class":"c","name":"n"},"waiting":3,"reason":"why"}`:     object.PausedReceiver{ID: id, Waiting: 3, Reason: why},
		`{"seq":1,"at":"1970-01-01T00:00:01Z","kind":"k","data":"AQ=="}`: object.Event{Seq: 1, At: at, Kind: "k", Data: []byte{1}},
		`{"name":"n","due":"1970-01-01T00:00:01Z","scheduled":"1970-01-01T00:00:01Z","schedule":"every 1m0s 0s","failures":1,"lastError":"why"}`: timers.Timer{
			Name: "n", Due: at, Scheduled: at, Schedule: jobs.Every(time.Minute), Failures: 1, LastError: "why",
		},
		`{"name":"n","due":"1970-01-01T00:00:01Z","failures":0}`:                            timers.Timer{Name: "n", Due: at},
		`{"scheduled":"1970-01-01T00:00:01Z","attempt":2,"lastError":"why","crashed":true}`: object.AlarmInfo{Scheduled: at, Attempt: 2, LastError: "why", Crashed: true},
		`{"reason":"crashed","opened":"1970-01-01T00:00:01Z","crashes":2}`:                  object.Activation{Reason: object.Crashed, Opened: at, Crashes: 2},
		`{"reason":"fresh"}`:                          object.Activation{},
		`{"jobs":3,"moved":2,"failed":1,"err":"why"}`: jobs.Rearmed{Jobs: 3, Moved: 2, Failed: 1, Err: why},
		`{"jobs":3,"moved":3,"failed":0}`:             jobs.Rearmed{Jobs: 3, Moved: 3},
		`{"id":"n","err":"why"}`:                      workflow.Divergence{ID: "n", Err: why},
	} {
		if got, err := json.Marshal(fact); string(got) != want || err != nil {
			t.Errorf("J2: %T is %s, want %s, %v", fact, got, want, err)
		}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(fact)) {
			if f.IsExported() && !camel.MatchString(f.Tag.Get("json")) {
				t.Errorf("J2: %T.%s has the tag %q", fact, f.Name, f.Tag.Get("json"))
			}
		}
	}
}
