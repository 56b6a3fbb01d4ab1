// Package outside finds the programs of others that tests run.
//
// A test that needs one is skipped where the program is not installed; this is the only reason for
// which a test is skipped. With the variable of the program set to "required", as in CI, the test
// fails instead.
package outside

import (
	"os"
	"os/exec"
	"testing"
)

// Chromium returns the path of Chromium. Its variable is HOLDFAST_BROWSER.
func Chromium(t testing.TB) string {
	t.Helper()
	return find(t, "HOLDFAST_BROWSER", "chromium", "chromium", "chromium-browser", "google-chrome")
}

// Prometheus returns the path of promtool or prometheus. The variable of both is HOLDFAST_PROMTOOL.
func Prometheus(t testing.TB, program string) string {
	t.Helper()
	return find(t, "HOLDFAST_PROMTOOL", "prometheus", program)
}

// Python returns the path of python3. Its variable is HOLDFAST_PYTHON.
func Python(t testing.TB) string {
	t.Helper()
	return find(t, "HOLDFAST_PYTHON", "python3", "python3")
}

// find returns the path of the first of the names that is installed. debian is the package that has it.
func find(t testing.TB, variable, debian string, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const told = "NOT RUN: %s is not installed: apt-get install --no-install-recommends %s"
	if os.Getenv(variable) == "required" {
		t.Fatalf(told, names[0], debian)
	}
	t.Skipf(told, names[0], debian)
	return ""
}
