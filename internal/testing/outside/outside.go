// Package outside finds the programs of others that tests run.
//
// A test that needs one is skipped where the program is not installed. With the variable of the program
// set to "required" the test fails instead, and with "later" it is skipped although the program is
// there: CI runs each of these tests once, in the step that installs what they need.
package outside

import (
	"os"
	"os/exec"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
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

// Git returns the path of git. Its variable is HOLDFAST_GIT, without which the test is skipped, because a release takes minutes.
func Git(t testing.TB) string {
	t.Helper()
	if os.Getenv("HOLDFAST_GIT") != required {
		t.Skip("NOT RUN: it takes minutes: set HOLDFAST_GIT=" + required)
	}
	return find(t, "HOLDFAST_GIT", "git", "git")
}

// Postgres returns the directory with the programs of PostgreSQL, see pgtest.Find. Its variable is HOLDFAST_POSTGRES.
func Postgres(t testing.TB) string {
	t.Helper()
	putOff(t, "HOLDFAST_POSTGRES")
	bin, err := pgtest.Find()
	if err != nil {
		missing(t, "HOLDFAST_POSTGRES", "initdb", "postgresql")
	}
	return bin
}

// Values of the variables.
const (
	required = "required" // the test fails without its program
	later    = "later"    // the test is skipped
)

// find returns the path of the first of the names that is installed. debian is the package that has it.
func find(t testing.TB, variable, debian string, names ...string) string {
	t.Helper()
	putOff(t, variable)
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing(t, variable, names[0], debian)
	return ""
}

// putOff skips a test that another run of the tests is going to run.
func putOff(t testing.TB, variable string) {
	t.Helper()
	if os.Getenv(variable) == later {
		t.Skipf("NOT RUN: %s is %s", variable, later)
	}
}

// missing ends a test for which a program is missing.
func missing(t testing.TB, variable, name, debian string) {
	t.Helper()
	const told = "NOT RUN: %s is not installed: apt-get install --no-install-recommends %s"
	if os.Getenv(variable) == required {
		t.Fatalf(told, name, debian)
	}
	t.Skipf(told, name, debian)
}
