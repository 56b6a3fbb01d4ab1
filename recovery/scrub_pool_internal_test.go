package recovery

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// counters is the row of a partition's counters; see FORMAT.md.
func counters(version, mode, due byte, numbers ...uint64) []byte {
	b := binary.AppendUvarint([]byte{version, mode, due}, uint64(len(numbers)))
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// Proves R6, W1: a row counts as the counters of a partition if it is whole, of a known
// form, and its sum is right. A row of a newer writer, with more numbers, counts too.
func TestCountersAreRecognized(t *testing.T) {
	right := []uint64{31, 1, 2, 4, 8, 16, 0, 0, 0, 0, 0} // submitted, and its five parts
	with := func(at int, n uint64) []uint64 {
		out := slices.Clone(right)
		out[at] = n
		return out
	}
	for name, tt := range map[string]struct {
		raw  []byte
		want partition
	}{
		"running":        {counters(1, 0, 0, right...), partition{is: true, pending: 1, running: 2}},
		"paused":         {counters(1, 1, 0, right...), partition{is: true, pending: 1, running: 2, paused: true}},
		"draining":       {counters(1, 2, 0, right...), partition{is: true, pending: 1, running: 2}},
		"due":            {counters(1, 0, 1, right...), partition{is: true, pending: 1, running: 2, due: true}},
		"calls":          {counters(1, 0, 0, with(10, 1)...), partition{is: true, pending: 1, running: 2, due: true}},
		"no calls":       {counters(1, 0, 0, with(9, 1)...), partition{is: true, pending: 1, running: 2}},
		"newer":          {counters(1, 0, 0, append(with(10, 0), 7)...), partition{is: true, pending: 1, running: 2}},
		"older version":  {counters(0, 0, 0, right...), partition{}},
		"newer version":  {counters(2, 0, 0, right...), partition{}},
		"another mode":   {counters(1, 3, 0, right...), partition{}},
		"another due":    {counters(1, 0, 2, right...), partition{}},
		"fewer":          {counters(1, 0, 0, right[:10]...), partition{}},
		"no counters":    {counters(1, 0, 0), partition{}},
		"three bytes":    {[]byte{1, 0, 0}, partition{}},
		"empty":          {nil, partition{}},
		"cut":            {append([]byte{1, 0, 0, 11}, make([]byte, 10)...), partition{}},
		"count too high": {append([]byte{1, 0, 0, 20}, counters(1, 0, 0, right...)[4:]...), partition{}},
		"count too low":  {append([]byte{1, 0, 0, 10}, counters(1, 0, 0, right...)[4:]...), partition{}},
		"no number":      {append([]byte{1, 0, 0, 11}, bytes.Repeat([]byte{0xff}, 11)...), partition{}},
		"bad count":      {append([]byte{1, 0, 0}, bytes.Repeat([]byte{0xff}, 30)...), partition{}},
	} {
		var p partition
		ok := p.decode(tt.raw)
		if tt.want.is {
			tt.want.raw = string(tt.raw)
		} else {
			p.raw, p.pending, p.running, p.due, p.paused = "", 0, 0, false, false
		}
		if ok != tt.want.is || p != tt.want {
			t.Errorf("%s: %+v, %t, want %+v", name, p, ok, tt.want)
		}
	}
	for part := range 6 {
		var p partition
		if p.decode(counters(1, 0, 0, with(part, right[part]+1)...)) {
			t.Errorf("one more of number %d: the sum is wrong, and the row is taken for a partition's", part)
		}
	}
	var p partition
	if whole := counters(1, 0, 0, make([]uint64, 11)...); !p.decode(whole) || p.decode(whole[:len(whole)-1]) {
		t.Error("a row of eleven bytes is whole, and one byte less is not")
	}
}

// Proves J5: only executions of tasks count as those of running tasks.
func TestSubjectOfAnExecution(t *testing.T) {
	for row, want := range map[string]string{
		"\x01\x00\x06task/1": "task/", "\x01\x00\x05task/": "task/", "\x01\x00\x04task": "", "\x01\x00\x09OnDead/12": "OnDea", "": "",
	} {
		if got := subject([]byte(row)); got != want {
			t.Errorf("%q: %q, want %q", row, got, want)
		}
	}
}

// Proves R3, J5: the contradictions of a partition.
func TestPartitionContradicts(t *testing.T) {
	for _, tt := range []struct {
		p       partition
		armed   bool
		promise string
		orphan  bool
	}{
		{partition{}, false, "", false},
		{partition{}, true, "", false},
		{partition{running: 2, executions: 1}, true, "J5", false},
		{partition{running: 2, executions: 2}, true, "", false},
		{partition{running: 2, executions: 3}, true, "", false},
		{partition{running: 1, executions: 1}, false, "J5", false},
		{partition{pending: 1}, true, "", false},
		{partition{pending: 1}, false, "R3", true},
		{partition{pending: 1, paused: true}, false, "", false},
		{partition{paused: true, due: true}, false, "R3", true},
		{partition{due: true}, true, "", false},
	} {
		promise, problem, orphan := tt.p.contradiction(tt.armed)
		if promise != tt.promise || orphan != tt.orphan || (problem == "") != (promise == "") {
			t.Errorf("%+v, armed %t: %s, %q, %t", tt.p, tt.armed, promise, problem, orphan)
		}
	}
}

// Proves A1, J2, J3, J5, R3: the contradictions of a job, in each status.
func TestJobContradicts(t *testing.T) {
	at := time.Unix(1, 0)
	for _, tt := range []struct {
		f       facts
		promise string
		orphan  bool
	}{
		{facts{}, "", false},
		{facts{armed: true, listed: true}, "", false},
		{facts{armed: true}, "A1", false},
		{facts{open: true}, "J5", false},
		{facts{open: true, armed: true, listed: true}, "", false},
		{facts{pool: partition{is: true, running: 1}, armed: true, listed: true}, "J5", false},
		{facts{pool: partition{is: true, pending: 1}}, "R3", true},
		{facts{job: true, meta: jobs.Meta{Status: jobs.Running}}, "R3", true},
		{facts{job: true, meta: jobs.Meta{Status: jobs.Running}, armed: true, listed: true}, "", false},
		{facts{job: true, meta: jobs.Meta{Status: jobs.Running, ExecutingAt: at}, armed: true, listed: true}, "J2", false},
		{facts{job: true, meta: jobs.Meta{Status: jobs.Executing, ExecutingAt: at}, armed: true, listed: true}, "J5", false},
		{facts{job: true, meta: jobs.Meta{Status: jobs.Executing, ExecutingAt: at}, open: true, armed: true, listed: true}, "", false},
		{facts{job: true, meta: jobs.Meta{Status: "paused"}, label: "paused"}, "", false},
		{facts{job: true, meta: jobs.Meta{Status: "paused"}}, "J18", false},
		{facts{job: true, meta: jobs.Meta{Status: "paused"}, label: "failed"}, "J18", false},
		{facts{job: true, meta: jobs.Meta{Status: jobs.Running}, label: "failed", armed: true, listed: true}, "J18", false},
		{facts{job: true, meta: jobs.Meta{Status: "paused"}, armed: true, listed: true}, "J3", false},
		{facts{job: true, meta: jobs.Meta{Status: "stopped"}, armed: true, listed: true}, "J3", false},
		{facts{job: true, meta: jobs.Meta{Status: "failed"}, armed: true, listed: true}, "J3", false},
		{facts{job: true, meta: jobs.Meta{Status: "terminated"}, armed: true, listed: true}, "J3", false},
		{facts{job: true, meta: jobs.Meta{Status: "failed", Hooks: 1}, label: "failed", armed: true, listed: true}, "", false},
	} {
		promise, problem, orphan := tt.f.contradiction()
		if promise != tt.promise || orphan != tt.orphan || (problem == "") != (promise == "") {
			t.Errorf("%+v: %s, %q, %t", tt.f, promise, problem, orphan)
		}
	}
}
