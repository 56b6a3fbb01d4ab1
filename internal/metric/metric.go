// Package metric is the table of all metrics: of a host and of the server.
//
// The code that counts takes name, labels and help of a metric from its row. The documents, the
// alerts and the board are checked against the rows, and the board is made of them. So a metric
// has one name everywhere, and none is told of that does not exist.
package metric

import "slices"

// Kind is how a metric is read.
type Kind string

const (
	Counter   Kind = "counter"   // it only grows, but for a restart
	Gauge     Kind = "gauge"     // a value of now
	Histogram Kind = "histogram" // counts by size, in seconds
)

// Metric is one row.
type Metric struct {
	Name   string // with the prefix of all
	Kind   Kind
	Group  string   // the metrics that stand together on a board
	Labels []string // in the order in which the code gives their values
	Help   string
}

// Prefix begins the name of each metric.
const Prefix = "holdfast_"

var all []*Metric

// All returns the rows in their order. The caller changes none of them.
func All() []*Metric { return slices.Clone(all) }

// Names returns the names under which Prometheus stores a metric: a histogram has three.
func (m *Metric) Names() []string {
	if m.Kind == Histogram {
		return []string{m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}
	}
	return []string{m.Name}
}

// group adds rows to the table for the metrics that stand together.
type group string

func (g group) add(kind Kind, name, help string, labels []string) *Metric {
	m := &Metric{Name: Prefix + name, Kind: kind, Group: string(g), Labels: labels, Help: help}
	all = append(all, m)
	return m
}

func (g group) counter(name, help string, labels ...string) *Metric {
	return g.add(Counter, name, help, labels)
}

func (g group) gauge(name, help string, labels ...string) *Metric {
	return g.add(Gauge, name, help, labels)
}

func (g group) histogram(name, help string, labels ...string) *Metric {
	return g.add(Histogram, name, help, labels)
}
