package lint

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// contract is how many promises each chapter of docs/CONTRACT.md has. A number,
// once given, is never given to another promise and never left out.
var contract = map[string]int{
	"O": 29,
	"S": 17,
	"M": 8,
	"A": 11,
	"T": 5,
	"J": 23,
	"C": 5,
	"D": 6,
	"W": 13,
	"H": 3, "F": 19, "K": 3, "E": 3, "G": 3,
	"R": 7,
	"Y": 4,
	"B": 3,
	"U": 11,
	"V": 23,
	"N": 11,
}

func TestContractNumbersAreWhole(t *testing.T) {
	var want []string
	for letter, n := range contract {
		for i := range n {
			want = append(want, fmt.Sprint(letter, i+1))
		}
	}
	sameNumbers(t, "docs/CONTRACT.md", promises.numbers(read(t, "docs/CONTRACT.md")), want)
}

// crashRows is how many crash points each table of docs/CASES.md has; the
// stories of other systems are the plain numbers.
var crashRows = map[string]int{
	"": 47, "CR": 7, "TM": 7, "DB": 7, "WP": 6, "PH": 6, "AJ": 6, "MS": 11, "WF": 23, "JO": 6,
	"OB": 13,
	"SU": 8,
	"PL": 16,
	"SC": 9,
	"JB": 16,
	"ST": 23,
	"HN": 6,
	"WY": 3,
}

func TestCaseNumbersAreWhole(t *testing.T) {
	var want []string
	for prefix, n := range crashRows {
		for i := range n {
			want = append(want, fmt.Sprint(prefix, i+1))
		}
	}
	sameNumbers(t, "docs/CASES.md", cases.numbers(read(t, "docs/CASES.md")), want)
}

// sameNumbers says which numbers a document lacks, has too many of, or has twice.
func sameNumbers(t *testing.T, document string, got, want []string) {
	t.Helper()
	count := map[string]int{}
	for _, n := range want {
		count[n]--
	}
	for _, n := range got {
		count[n]++
	}
	for _, n := range slices.Sorted(maps.Keys(count)) {
		if count[n] != 0 {
			t.Errorf("%s has %+d of %s: each number stands there exactly once; a new one goes into the table of this test", document, count[n], n)
		}
	}
}

// promised finds the promises in the last cell of a row of docs/CASES.md.
var promised = regexp.MustCompile(`(?m)^\| (?:[A-Z]+)?\d+ \|.*\| ([^|]+) \|$`)

func TestCasesNameRealPromises(t *testing.T) {
	known := promises.numbers(read(t, "docs/CONTRACT.md"))
	for _, m := range promised.FindAllStringSubmatch(read(t, "docs/CASES.md"), -1) {
		for p := range strings.SplitSeq(m[1], ", ") {
			if !slices.Contains(known, p) {
				t.Errorf("docs/CASES.md names the promise %q, which docs/CONTRACT.md does not have, in:\n%s", p, m[0])
			}
		}
	}
}

// The commands of the README are those that .ci/run tests.
func TestReadmeCommands(t *testing.T) {
	readme, ci := read(t, "README.md"), read(t, ".ci/run")
	for _, command := range []string{"go run ./examples/ingest", "go run ./examples/orders", "go test work"} {
		if !strings.Contains(readme, command) {
			t.Errorf("README.md does not name the command %q", command)
		}
	}
	if !strings.Contains(ci, "\n  logged go test work\n") {
		t.Error(".ci/run does not run the README's test command, go test work, as it stands there")
	}
}

// codeSpan finds the code and the comments of a document.
var codeSpan = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|<!--.*?-->")

// link finds the relative links of a document: a path, an anchor, or both.
var link = regexp.MustCompile(`\]\(([^):#]*)(?:#([^)]*))?\)`)

var (
	heading   = regexp.MustCompile("(?m)^#+ (.*)$")
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors of the headings of a document, as a page of a forge has them:
// metrics-and-alerts for Metrics and alerts.
func anchors(document string) map[string]bool {
	found := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(document, -1) {
		plain := notAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		found[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, d := range documents(t) {
		text, err := os.ReadFile(d)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(d, root+"/")
		for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(string(text), " "), -1) {
			to := d
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(d), m[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there: correct the link, or write the file", name, m[1])
				continue
			}
			if m[2] == "" {
				continue
			}
			if target, err := os.ReadFile(to); err != nil || !anchors(string(target))[m[2]] {
				t.Errorf("%s links to #%s of %s, which has no such heading: correct the link", name, m[2], cmp.Or(m[1], name))
			}
		}
	}
}

func TestClaimsAreSeen(t *testing.T) {
	const text = "package x\n\n// Proves O1, O2\n// and S3. Case 4.\nfunc TestX(t *testing.T) { t.Run(\"Cases 5 and CR6\", nil) }\n"
	s := sample(t, "object/x_test.go", text)
	if got := strings.Join(promises.named(s), " "); got != "O1 O2 S3" {
		t.Errorf("promises named: %s", got)
	}
	if got := strings.Join(cases.named(s), " "); got != "4 5 CR6" {
		t.Errorf("cases named: %s", got)
	}
	uncovered, unknown := promises.compare("- **O1** a\n- **O2** b\n- **O9** c\n", []source{s})
	if strings.Join(uncovered, " ") != "O9" || strings.Join(unknown, " ") != "S3 in object/x_test.go" {
		t.Errorf("uncovered %v, unknown %v", uncovered, unknown)
	}
	if got := promises.named(sample(t, "object/y_test.go", "package x // Proves O1\n")); got != nil {
		t.Errorf("a file that go test runs nothing of claims %v", got)
	}
}
