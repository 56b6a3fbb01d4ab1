// Package outside finds the programs of others that tests run.
package outside

import (
	"os"
	"os/exec"
	"testing"
)

// Prometheus skips a test unless promtool or prometheus is installed; Debian's package prometheus
// has both. With HOLDFAST_PROMTOOL=required, as in CI, the test fails instead.
func Prometheus(t *testing.T, program string) {
	t.Helper()
	_, err := exec.LookPath(program)
	switch {
	case err == nil:
	case os.Getenv("HOLDFAST_PROMTOOL") == "required":
		t.Fatal(err)
	default:
		t.Skipf("%s is not installed: apt-get install prometheus", program)
	}
}
