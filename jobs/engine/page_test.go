package engine

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// The table of limits and defaults of docs/JOBS.md has those of all types as they are.
func TestDefaultsOfTheDocuments(t *testing.T) {
	page, err := os.ReadFile("../../docs/JOBS.md")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{}.WithDefaults()
	if o.Heartbeat != o.Lease/3 || (jobs.Retry{}).Backoff.Delay(1, nil) != time.Second || (jobs.Retry{}).Backoff.Delay(99, nil) != time.Minute {
		t.Error("correct the defaults of Heartbeat and Backoff in docs/JOBS.md, and here")
	}
	for _, row := range []string{
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
