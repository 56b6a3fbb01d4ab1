package harness

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/workflow/workflowrow"
	"github.com/holdfast-dev/holdfast/storage"
)

// facts are the stored state of an object in words: its alarm, its job, its open
// executions and its keys, values of JSON field by field.
type facts []fact

type fact struct{ name, value string }

func (f *facts) add(name, value string) { *f = append(*f, fact{name, value}) }

// get is the value of a fact; "-" if there is none.
func (f facts) get(name string) string {
	for _, x := range f {
		if x.name == name {
			return x.value
		}
	}
	return "-"
}

// factsOf reads the facts of an object.
func factsOf(view *storedState, o storage.Object) (f facts) {
	if o.Number == 0 {
		return nil
	}
	if row, ok, err := view.Alarm(o); err != nil {
		f.add("alarm", err.Error())
	} else if ok {
		f.add("alarm", alarmText(row))
	} else {
		f.add("alarm", "none")
	}
	if mark, ok, _ := view.OpenMark(o); ok {
		f.add("open execution", openText(mark))
	}
	of := wordsOf(view, o)
	it, err := view.ListData(nil, o, "", "", false)
	if err != nil {
		f.add("keys", err.Error())
		return f
	}
	defer it.Close()
	for it.Next() {
		f.addKey(of, string(it.Key()), it.Value())
	}
	return f
}

// jobWords are the words for the facts of a job of one type.
type jobWords struct {
	run, runs, success string
	isWorkflow         bool
}

// A workflow has one run. The engine counts its stretches, from one wait to the next, as runs.
var (
	wordsOfJobs      = jobWords{run: "run", runs: "runs", success: "last success"}
	wordsOfWorkflows = jobWords{run: "stretch", runs: "stretches", success: "last stretch ended", isWorkflow: true}
)

// wordsOf are the words for the type of the job that an object is, as its metadata tell it.
func wordsOf(view *storedState, o storage.Object) jobWords {
	if meta, ok, err := metaOf(view, o); ok && err == nil && meta.Type == "workflow" {
		return wordsOfWorkflows
	}
	return wordsOfJobs
}

// addKey adds the value of a key: metadata of a job, open executions and rows of a workflow
// in words, JSON by field, everything else as text.
func (f *facts) addKey(of jobWords, key string, value []byte) {
	if name, text, ok := workflowrow.Text(key, value, machine.Epoch); ok && of.isWorkflow {
		f.add(name, text)
		return
	}
	var meta jobs.Meta
	if key == jobs.MetaKey && json.Unmarshal(value, &meta) == nil && meta.Status.Valid() {
		f.addMeta(of, meta)
		return
	}
	if x, err := engine.DecodeExecution(key, value); err == nil {
		f.addExecution(of, x)
		return
	}
	f.addJSON(printable([]byte(key)), value, 2)
}

// addMeta adds the metadata of a job, without its names.
func (f *facts) addMeta(of jobWords, m jobs.Meta) {
	f.add("job status", m.Status.String())
	f.addTime("executing since", m.ExecutingAt)
	f.addText("token", string(m.ExecutionID))
	f.addNumber(of.runs+" done", m.RunCount)
	f.addRun("", of.run, m.Run)
	f.addTime("next "+of.run, m.NextAt)
	f.addTime(of.success, m.LastSuccessfulAt)
	f.addTime("ended", m.EndedAt)
	f.addTime("last recovery", m.LastRecoveryAt)
	f.addNumber(of.runs+" given up", uint64(m.Failures))
	f.addText("last error", m.LastError)
	f.addText("stop reason", m.StopReason)
}

func (f *facts) addRun(prefix, run string, r jobs.Run) {
	f.addNumber(prefix+run, r.Number)
	f.addNumber(prefix+"attempts", uint64(r.Attempt))
	f.addNumber(prefix+"failures", uint64(r.Failures))
	f.addNumber(prefix+"crashes", uint64(r.Recoveries))
	f.addTime(prefix+"retry at", r.RetryAt)
	f.addText(prefix+run+"'s error", r.LastError)
}

func (f *facts) addExecution(of jobWords, x engine.Execution) {
	prefix := "execution "
	if x.Subject != "" {
		prefix += x.Subject + " "
	}
	f.add(prefix+"began", fmt.Sprintf("%s, opening %d", sinceEpoch(x.Began), x.Epoch))
	f.addTime(prefix+"lease", x.Lease)
	f.addRun(prefix, of.run, x.Run)
}

func (f *facts) addTime(name string, t time.Time) {
	if !t.IsZero() {
		f.add(name, sinceEpoch(t))
	}
}

func (f *facts) addText(name, text string) {
	if text != "" {
		f.add(name, text)
	}
}

func (f *facts) addNumber(name string, n uint64) {
	if n != 0 {
		f.add(name, fmt.Sprint(n))
	}
}

// addJSON adds the fields of a value, down to a depth, or the value as a whole.
func (f *facts) addJSON(name string, value []byte, depth int) {
	var fields map[string]json.RawMessage
	if depth > 0 && json.Unmarshal(value, &fields) == nil && len(fields) > 0 {
		for _, k := range sortedKeys(fields) {
			f.addJSON(name+"."+k, fields[k], depth-1)
		}
		return
	}
	var t time.Time
	if json.Unmarshal(value, &t) == nil && t.Year() >= machine.Epoch.Year() {
		f.add(name, sinceEpoch(t))
		return
	}
	f.add(name, printable(value))
}

// sinceEpoch is a time as the timeline tells it.
func sinceEpoch(t time.Time) string { return t.Sub(machine.Epoch).String() }

func alarmText(value []byte) string {
	row, err := alarm.DecodeRow(value)
	if err != nil {
		return err.Error()
	}
	text := "at " + sinceEpoch(row.Due)
	if row.Dead {
		text = "dead letter"
	}
	if row.Attempt > 0 {
		text += fmt.Sprintf(", %s failed", count(row.Attempt, "attempt"))
	}
	if row.Crashes > 0 {
		text += fmt.Sprintf(", %s cut off", count(row.Crashes, "attempt"))
	}
	if row.LastError != "" {
		text += fmt.Sprintf(", last error %q", row.LastError)
	}
	return text
}

// openText tells which opening of the store an open-execution mark is from.
func openText(mark []byte) string {
	if epoch, n := binary.Uvarint(mark[min(1, len(mark)):]); n > 0 { // after the version, see FORMAT.md
		return fmt.Sprintf("since opening %d", epoch)
	}
	return printable(mark)
}

// printable is b as text if it is text, and shortened.
func printable(b []byte) string {
	const most = 200
	if len(b) > most {
		return fmt.Sprintf("%.*q... (%d bytes)", most, b, len(b))
	}
	for _, c := range string(b) {
		if c < ' ' || c == 0x7f || c == utf8.RuneError {
			return fmt.Sprintf("%q", b)
		}
	}
	return string(b)
}
