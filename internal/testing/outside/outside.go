// Package outside finds the programs of others that tests run.
package outside

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// Prometheus reports whether promtool or prometheus is installed; Debian's package prometheus has
// both. If it is not, a test of it says in one line that it has tested nothing and passes, unless
// HOLDFAST_PROMTOOL=required, as in CI.
func Prometheus(t *testing.T, program string) bool {
	t.Helper()
	_, err := exec.LookPath(program)
	if err == nil {
		return true
	}
	if os.Getenv("HOLDFAST_PROMTOOL") == "required" {
		t.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "NOT TESTED: %s, because %s is not installed: apt-get install prometheus\n", t.Name(), program)
	return false
}
