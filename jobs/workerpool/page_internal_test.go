package workerpool

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// grouped writes a number with a comma between thousands, as the documents do.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// The table of limits and defaults of docs/JOBS.md has those of a pool as they are.
func TestDefaultsOfTheDocuments(t *testing.T) {
	page, err := os.ReadFile("../../docs/JOBS.md")
	if err != nil {
		t.Fatal(err)
	}
	c := &Config[int, int]{}
	d := c.untyped().withDefaults()
	if d.Retention.Completed != time.Hour || d.Retention.Cancelled != time.Hour || onceFor != 24*time.Hour || d.MaxQueued != 10_000_000 {
		t.Errorf("a done task is kept for %v, a key is remembered for %v, MaxQueued is %d: docs/JOBS.md says 1 hour, a day, 10 million", d.Retention.Completed, onceFor, d.MaxQueued)
	}
	for _, row := range []string{
		fmt.Sprintf("| `Retry.MaxAttempts` | 1; in a pool %d |", d.Retry.MaxAttempts),
		fmt.Sprintf("| pool: `Concurrency`, `Partitions`, `PerKey` | %d (or `Partitions` if more), %d, %d | `Partitions` ≤ %s and ≤ `Concurrency` |",
			d.Concurrency, d.Partitions, d.PerKey, grouped(maxPartitions)),
		"| pool: `MaxQueued`; `Retention.Completed`, `Retention.Cancelled` | 10 million; 1 hour, 1 hour |",
		fmt.Sprintf("| %d named, names of %d bytes, weights 1 to %s |", maxQueues, maxQueueBytes, grouped(maxWeight)),
		fmt.Sprintf("| pool: `Priority` | 0 | -%[1]s to %[1]s |", grouped(maxPriority)),
		fmt.Sprintf("| a day for `Idempotent` | %d bytes |", maxKeyBytes),
		fmt.Sprintf("| %d: the first and the last %d |", maxFailures, maxFailures/2),
		fmt.Sprintf("**EnqueueBatch** adds up to %s tasks", grouped(maxBatch)),
	} {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/JOBS.md does not say, as the code does: %s", row)
		}
	}
}
