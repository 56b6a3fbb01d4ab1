// Package outside finds the external programs that some tests need.
//
// A test that needs one runs only if the program's environment variable is
// set to "required", as .ci/run does after installing all of them. It then
// fails if the program is missing. Otherwise it is skipped, so that go test
// takes the same time whatever a machine has installed.
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

// Postgres returns the directory with PostgreSQL's programs; see pgtest.Find.
// Its variable is HOLDFAST_POSTGRES.
func Postgres(t testing.TB) string {
	t.Helper()
	need(t, "HOLDFAST_POSTGRES", "postgresql")
	bin, err := pgtest.Find()
	if err != nil {
		missing(t, "initdb", "postgresql")
	}
	return bin
}

// required is the value of a variable that lets the program's tests run.
const required = "required"

// find returns the path of the first of the names that is installed. debian is the package that contains it.
func find(t testing.TB, variable, debian string, names ...string) string {
	t.Helper()
	need(t, variable, debian)
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing(t, names[0], debian)
	return ""
}

// need skips a test whose program isn't required in this run.
func need(t testing.TB, variable, debian string) {
	t.Helper()
	if os.Getenv(variable) != required {
		t.Skipf("NOT RUN: it needs the Debian package %s and %s=%s", debian, variable, required)
	}
}

// missing fails a test whose program is not installed.
func missing(t testing.TB, name, debian string) {
	t.Helper()
	t.Fatalf("%s is not installed: apt-get install --no-install-recommends %s", name, debian)
}
