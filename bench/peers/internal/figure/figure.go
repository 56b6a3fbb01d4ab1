// Package figure holds what the programs of bench/peers measure: each appends its
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

// Figure is what one system did in one round of a workload.
type Figure struct {
	Workload string  `json:"workload"` // the ID of one of Workloads
	N        int     `json:"n"`        // of keys, alarms or jobs
	Value    float64 `json:"value"`    // in the unit of the workload
	System
}

// System is who was measured.
type System struct {
	Name       string `json:"system"`     // with its setting, such as "asynq, appendfsync always"
	Durability string `json:"durability"` // what is on disk when a caller is answered
	Over       string `json:"over"`       // how callers reach it: "in process", "TCP" or "HTTP"
}

// Workload is what all systems are given to do that can.
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
}

// Reporter appends the figures of one system to a file.
type Reporter struct {
	path   string
	system System
}

// Flags makes a Reporter whose fields are set when f is parsed.
func Flags(f *flag.FlagSet) *Reporter {
	r := &Reporter{}
	f.StringVar(&r.path, "figures", "", "file to which the figures are appended")
	f.StringVar(&r.system.Name, "system", "", "name of the system and its setting")
	f.StringVar(&r.system.Durability, "durability", "", "what is on disk when a caller is answered")
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
