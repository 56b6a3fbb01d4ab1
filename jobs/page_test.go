package jobs

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
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

// The table of limits and defaults of docs/JOBS.md has those of all types as they are.
func TestDefaultsOfTheDocuments(t *testing.T) {
	page, err := os.ReadFile("../docs/JOBS.md")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{}.WithDefaults()
	if o.Heartbeat != o.Lease/3 || (Retry{}).Backoff.Delay(1, nil) != time.Second || (Retry{}).Backoff.Delay(99, nil) != time.Minute {
		t.Error("correct the defaults of Heartbeat and Backoff in docs/JOBS.md, and here")
	}
	for _, row := range []string{
		fmt.Sprintf("| period of `Every` and `Rate` | | at least %d ms |", minPeriod.Milliseconds()),
		fmt.Sprintf("| `Lease`, `Heartbeat` | %.0f s, a third of the lease |", o.Lease.Seconds()),
		fmt.Sprintf("`RecoveryDelay`, `MaxRecoveries` | %.0f s, %d ms, %d |", o.StaleThreshold.Seconds(), o.RecoveryDelay.Milliseconds(), o.MaxRecoveries),
		fmt.Sprintf("| %d in a row; of `OnExhausted` a job owes at most %d |", hookRetry.MaxAttempts, maxHooks),
		fmt.Sprintf("| `Version` | empty | %d bytes |", MaxVersionBytes),
		fmt.Sprintf("| `StartAll`, `AddAll` | %d at a time |", batchAtOnce),
		fmt.Sprintf("| %d KiB; %d KiB |", MaxTextBytes>>10, object.MaxStackBytes>>10),
	} {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/JOBS.md does not say, as the code does: %s", row)
		}
	}
}
