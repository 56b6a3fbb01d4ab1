package jobs

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tableMoves are the moves of the status table, each as "from-to".
func tableMoves() (all []string) {
	for from, next := range moves {
		for _, to := range next {
			all = append(all, from.String()+"-"+to.String())
		}
	}
	slices.Sort(all)
	return all
}

// statusRow is a row of the table of statuses of a page; arrow is one of its picture.
var (
	statusRow = regexp.MustCompile(`(?m)^\| (\w+) \| ([\w, ]*?) ?\| [^|]* \|$`)
	arrow     = regexp.MustCompile(`<path id="(\w+-\w+)"`)
)

// pageMoves are the moves that a page tells of, behind the head of its table.
func pageMoves(page string) (all []string) {
	_, table, _ := strings.Cut(page, "| from | to | by |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range statusRow.FindAllStringSubmatch(table+"\n", -1) {
		for to := range strings.SplitSeq(row[2], ", ") {
			all = append(all, row[1]+"-"+to)
		}
	}
	slices.Sort(all)
	return all
}

// pictureMoves are the arrows of pictures.
func pictureMoves(pictures string) []string {
	all := map[string]bool{}
	for _, m := range arrow.FindAllStringSubmatch(pictures, -1) {
		all[m[1]] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// Proves J3 as the documents tell of it: the table of docs/JOBS.md and the arrows of its
// two pictures are the moves of the table.
func TestStatusTableOfTheDocuments(t *testing.T) {
	want := tableMoves()
	page := read(t, "../docs/JOBS.md")
	pictures := read(t, "../docs/pictures/job-status.svg") + read(t, "../docs/pictures/job-ends.svg")
	for name, got := range map[string][]string{"page": pageMoves(page), "pictures": pictureMoves(pictures)} {
		if !slices.Equal(got, want) {
			t.Errorf("the %s of docs/JOBS.md tell of the moves\n%q\nwant those of jobs/status.go\n%q", name, got, want)
		}
	}
}

// read returns the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWrongStatusTablesAreSeen(t *testing.T) {
	page := "| a | b | x |\n\n| from | to | by |\n|---|---|---|\n| running | paused, failed | `x` |\n\n| stopped | running | y |\n"
	if got := pageMoves(page); !slices.Equal(got, []string{"running-failed", "running-paused"}) {
		t.Errorf("moves of the page: %q", got)
	}
	if got := pictureMoves(`<path id="paused-running" d=""/><path d=""/>`); !slices.Equal(got, []string{"paused-running"}) {
		t.Errorf("arrows of the picture: %q", got)
	}
}

func TestShortestPeriodOfTheDocuments(t *testing.T) {
	page := read(t, "../docs/JOBS.md")
	if row := fmt.Sprintf("| period of `Every` and `Rate` | | at least %d ms |", minPeriod.Milliseconds()); !strings.Contains(page, row) {
		t.Errorf("docs/JOBS.md does not say, as the code does: %s", row)
	}
}
