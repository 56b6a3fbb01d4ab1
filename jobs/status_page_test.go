package jobs

import (
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

// pictureMoves are the arrows of a picture.
func pictureMoves(picture string) []string {
	all := map[string]bool{}
	for _, m := range arrow.FindAllStringSubmatch(picture, -1) {
		all[m[1]] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// Proves J3 as the documents tell of it: the table of docs/JOBS.md and the arrows of its
// picture are the moves of the table.
func TestStatusTableOfTheDocuments(t *testing.T) {
	want := tableMoves()
	for path, read := range map[string]func(string) []string{
		"../docs/JOBS.md": pageMoves, "../docs/pictures/job-status.svg": pictureMoves,
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(string(text)); !slices.Equal(got, want) {
			t.Errorf("%s tells of the moves\n%q\nwant those of jobs/status.go\n%q", path, got, want)
		}
	}
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
