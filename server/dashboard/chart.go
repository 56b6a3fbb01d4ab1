package dashboard

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// Due is an object, or a job, with a time.
type Due struct {
	ID storage.ID
	At time.Time
}

// Waits are the calls in the mailboxes of a class.
type Waits struct {
	Class   string
	Calls   int
	Longest time.Duration // how long the one that has waited longest has waited
}

// Minute is how many executions have succeeded and failed in a minute. The first one may be shorter.
type Minute struct {
	From, To     time.Time
	Done, Failed int
}

// Throughput is a chart of the last hour.
type Throughput []Minute

// Sizes of the chart, in its own units.
const (
	chartWidth  = 600
	chartHeight = 80
)

// Most is the greatest count, at which the chart ends, and at least 1.
func (t Throughput) Most() int {
	most := 1
	for _, m := range t {
		most = max(most, m.Done, m.Failed)
	}
	return most
}

// Sum are all executions of the chart.
func (t Throughput) Sum() (all Minute) {
	for _, m := range t {
		all.Done, all.Failed = all.Done+m.Done, all.Failed+m.Failed
	}
	return all
}

// DoneLine and FailedLine are the points of a line. The newest minute is at the right.
func (t Throughput) DoneLine() string   { return t.line(func(m Minute) int { return m.Done }) }
func (t Throughput) FailedLine() string { return t.line(func(m Minute) int { return m.Failed }) }

func (t Throughput) line(count func(Minute) int) string {
	var b strings.Builder
	most := t.Most()
	for i, m := range t {
		fmt.Fprintf(&b, "%d,%d ", chartWidth-(len(t)-1-i)*chartWidth/60, chartHeight-count(m)*chartHeight/most)
	}
	return strings.TrimSpace(b.String())
}
