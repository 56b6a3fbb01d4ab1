package metric_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/internal/metric"
	"github.com/holdfast-dev/holdfast/internal/testing/outside"
)

const (
	rulesFile = "../../ops/prometheus/holdfast.rules.yml"
	casesFile = "../../ops/prometheus/holdfast.rules.test.yml"
)

// read returns the text of a file.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// found are the texts that the group of a pattern matches, in their order.
func found(pattern, text string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// Each alert has a paragraph in docs/RUNBOOK.md, to which it links, and a case in the tests of
// the rules, all in one order; and no paragraph or case is of an alert that is gone.
func TestAlertsHaveParagraphsAndCases(t *testing.T) {
	rules := read(t, rulesFile)
	alerts := found(`(?m)^ +- alert: (\w+)$`, rules)
	if len(alerts) < 12 {
		t.Fatalf("the rules have the alerts %q", alerts)
	}
	var links []string
	for _, name := range alerts {
		links = append(links, strings.ToLower(name))
	}
	book := read(t, "../../docs/RUNBOOK.md")
	for _, c := range []struct {
		of        string
		want, got []string
	}{
		{"headings of the runbook", alerts, found(`(?m)^## (.+)$`, book)},
		{"paragraphs of the runbook", alerts, found(`(?m)^## (\w+)\n\n\S.{100}`, book)},
		{"links of the rules", links, found(`runbook: docs/RUNBOOK\.md#(\w+)\}`, rules)},
		{"cases of the tests", alerts, found(`(?m)^  - name: (\w+)$`, read(t, casesFile))},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("the alerts (-) and the %s (+):\n%s", c.of, diff)
		}
	}
	for i, one := range strings.Split(read(t, casesFile), "\n  - name: ")[1:] {
		if !strings.Contains(one, "alertname: "+alerts[i]+"\n        exp_alerts:") || !strings.Contains(one, "good") {
			t.Errorf("the case %s has no alert that fires, or no instance without one", alerts[i])
		}
	}
}

// unknown are the metrics that a text names and the table does not have.
func unknown(text string) (names []string) {
	known := map[string]bool{}
	for _, m := range metric.All() {
		for _, name := range append(m.Names(), m.Name) {
			known[name] = true
		}
	}
	for _, name := range found(`\b(holdfast_\w+)`, text) {
		if !known[name] {
			names = append(names, name)
		}
	}
	return names
}

// The rules and the runbook name metrics of the table alone.
func TestRulesNameMetricsThatExist(t *testing.T) {
	for _, file := range []string{rulesFile, casesFile, "../../docs/RUNBOOK.md", "../../docs/OPERATIONS.md"} {
		if names := unknown(read(t, file)); len(names) > 0 {
			t.Errorf("%s names the metrics %q, which do not exist", file, names)
		}
	}
	if got := unknown("holdfast_up holdfast_gate_seconds_bucket holdfast_gone"); !slices.Equal(got, []string{"holdfast_gone"}) {
		t.Errorf("unknown metrics: %q", got)
	}
}

// Each alert fires in its case, and for the instance beside it does not. promtool, which knows the
// language of the rules, tells.
func TestAlertsFire(t *testing.T) {
	promtool := outside.Prometheus(t, "promtool")
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"test", "rules", casesFile}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
