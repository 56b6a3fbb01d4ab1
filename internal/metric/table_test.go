package metric_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/internal/metric"
)

// documented is a row of the table of metrics in docs/OPERATIONS.md.
var documented = regexp.MustCompile("(?m)^\\| `(holdfast_\\w+)` \\|([^|]*)\\|([^|]*)\\|")

// docs/OPERATIONS.md has a row for each metric, in the order of the table, with its labels, and
// calls the histograms so.
func TestDocumentsHaveTheTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, row := range documented.FindAllStringSubmatch(string(page), -1) {
		got = append(got, line(row[1], strings.TrimSpace(row[2]), strings.Contains(row[3], "(histogram)")))
	}
	for _, m := range metric.All() {
		want = append(want, line(m.Name, strings.Join(m.Labels, ", "), m.Kind == metric.Histogram))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table (-) and docs/OPERATIONS.md (+):\n%s", diff)
	}
}

func line(name, labels string, histogram bool) string {
	if histogram {
		name += " (histogram)"
	}
	return name + " {" + labels + "}"
}

// The names tell the kind and the unit, as Prometheus asks for, and no name stands twice.
func TestNamesOfTheTable(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range metric.All() {
		if seen[m.Name] || m.Help == "" || m.Group == "" {
			t.Errorf("%s stands twice, or has no help or no group", m.Name)
		}
		seen[m.Name] = true
		if counts := strings.HasSuffix(m.Name, "_total"); counts != (m.Kind == metric.Counter) {
			t.Errorf("%s is a %s", m.Name, m.Kind)
		}
		if m.Kind == metric.Histogram && !strings.HasSuffix(m.Name, "_seconds") {
			t.Errorf("%s is a histogram, and has no unit", m.Name)
		}
	}
}
