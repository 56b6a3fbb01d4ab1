// Package figure holds the figures of the programs of bench/peers: each appends its
// figures to one file, a line of JSON each, from which the table is made.
package figure

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// Figure is the result of one system in one round of a workload.
type Figure struct {
	Workload string  `json:"workload"` // the ID of one of Workloads
	N        int     `json:"n"`        // of keys, alarms, jobs, steps or workflows
	Value    float64 `json:"value"`    // in the unit of the workload
	System
}

// System is the measured system.
type System struct {
	Name       string `json:"system"`     // with its setting, such as "asynq, appendfsync always"
	Durability string `json:"durability"` // the state of the disk when a caller is answered
	Over       string `json:"over"`       // how callers reach it: "in process", "TCP" or "HTTP"
}

// Workload is a workload that each system runs if it can.
type Workload struct {
	ID   string
	What string // with a %s for N
	Unit string
	Less bool // less is better
}

// Workloads in the order of the table. The first is the disk alone.
var Workloads = []Workload{
	{ID: "disk", What: "a write and sync of %s bytes, p50", Unit: "s", Less: true},
	{ID: "increments", What: "durable increments, keys: %s", Unit: "/s"},
	{ID: "alarms", What: "%s alarms due at once, until the last fired", Unit: "s", Less: true},
	{ID: "late", What: "%s alarms due at once, p99 late", Unit: "s", Less: true},
	{ID: "awaited", What: "jobs, %s callers that enqueue and await one each", Unit: "/s"},
	{ID: "through", What: "%s jobs enqueued one by one, until all are done", Unit: "/s"},
	{ID: "backlog", What: "%s jobs queued before, until all are done", Unit: "/s"},
	{ID: "step", What: "one workflow of %s empty steps, from step to step, p50", Unit: "µs", Less: true},
	{ID: "step processor", What: "one workflow of %s empty steps, processor time of a step", Unit: "µs", Less: true},
	{ID: "steps", What: "64 workflows of %s empty steps at a time, steps", Unit: "/s"},
	{ID: "steps processor", What: "64 workflows of %s empty steps at a time, processor time of a step", Unit: "µs", Less: true},
	{ID: "runs", What: "workflows of 3 empty steps, start to result, %s at a time", Unit: "/s"},
	{ID: "runs processor", What: "workflows of 3 empty steps, %s at a time, processor time of a workflow", Unit: "µs", Less: true},
}

// Reporter appends the figures of one system to a file.
type Reporter struct {
	path   string
	system System
}

// Flags makes a Reporter with fields that are set when f is parsed.
func Flags(f *flag.FlagSet) *Reporter {
	r := &Reporter{}
	f.StringVar(&r.path, "figures", "", "file to which the figures are appended")
	f.StringVar(&r.system.Name, "system", "", "name of the system and its setting")
	f.StringVar(&r.system.Durability, "durability", "", "state of the disk when a caller is answered")
	f.StringVar(&r.system.Over, "over", "TCP", "how callers reach the system")
	return r
}

// Add appends a figure, and tells of it.
func (r *Reporter) Add(workload string, n int, value float64) error {
	line, err := json.Marshal(Figure{workload, n, value, r.system})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, "%s\n", line); err != nil {
		f.Close() // the write has failed already
		return err
	}
	return f.Close()
}

// Read reads the figures of a file.
func Read(in io.Reader) (figures []Figure, err error) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var f Figure
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return nil, fmt.Errorf("read figure %q: %w", lines.Text(), err)
		}
		figures = append(figures, f)
	}
	return figures, lines.Err()
}
