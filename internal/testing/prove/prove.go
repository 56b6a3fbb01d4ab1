// Package prove tells tests whether scripts/prove runs them.
//
// An ordinary run of the tests tries each kind of case, and scripts/prove tries
// all of them: it sets HOLDFAST_PROVE. A test that measures real time runs only
// there, because its verdict depends on the machine.
package prove

import (
	"os"
	"testing"
	"time"
)

// Long reports whether scripts/prove runs the test.
func Long() bool { return os.Getenv("HOLDFAST_PROVE") != "" }

// Stride returns the distance between the places that an exploring test tries: 1, to
// try all of them, if scripts/prove runs it, and 5 otherwise.
func Stride() int {
	if Long() {
		return 1
	}
	return 5
}

// Only skips a test unless scripts/prove runs it.
func Only(t testing.TB) {
	t.Helper()
	if !Long() {
		t.Skip("NOT RUN: only scripts/prove runs it")
	}
}

// Timed reports how long a case took, beside its aim. scripts/prove lists these
// reports. A case that took longer doesn't fail, because that may be the machine's
// fault.
func Timed(t testing.TB, took, aim time.Duration) {
	t.Helper()
	verdict := "reached"
	if took > aim {
		verdict = "missed"
	}
	t.Logf("TIMED: %s took %s, aim %s: %s", t.Name(), took.Round(time.Millisecond), aim, verdict)
}
