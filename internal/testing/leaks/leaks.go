// Package leaks finds goroutines that tests leave behind, however slow the machine is.
package leaks

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// tries is how often goleak looks, which waits for half a second each time. A goroutine that is about to end
// only has to be run, so one that is there after all of them stays.
const tries = 100

// Main runs the tests of a package, and fails if they leave a goroutine behind.
func Main(m *testing.M, options ...goleak.Option) { os.Exit(Run(m, options...)) }

// Run is Main without the end of the process. It returns the exit code.
func Run(m *testing.M, options ...goleak.Option) int {
	code := m.Run()
	if code != 0 {
		return code
	}
	if err := find(tries, options...); err != nil {
		fmt.Fprintln(os.Stderr, "the tests passed and left goroutines behind:", err)
		return 1
	}
	return 0
}

// None fails the test if there are goroutines beside its own.
func None(t testing.TB) {
	t.Helper()
	if err := find(tries); err != nil {
		t.Error(err)
	}
}

func find(tries int, options ...goleak.Option) (err error) {
	for range tries {
		if err = goleak.Find(options...); err == nil {
			return nil
		}
	}
	return err
}
