// Package seeds fixes the seed of the repository's property tests, so that every
// run of go test draws the same inputs, and draws fewer of them than scripts/prove.
// A test package that draws its inputs imports it for that effect alone; a test of
// internal/lint checks this.
//
// The flag -rapid.seed and the variable RAPID_SEED choose another seed, and
// -rapid.seed=0 a random one. -rapid.checks and RAPID_CHECKS choose another number
// of inputs. internal/prove/reliability sets both, with a seed that follows from the
// commit.
package seeds

import (
	"flag"
	"fmt"

	_ "pgregory.net/rapid" // defines the flags before this package is initialized

	"github.com/holdfast-dev/holdfast/internal/testing/prove"
)

const (
	// fixed is the seed of a run that sets none. Its value does not matter.
	fixed = "20250711"
	// checks is the number of inputs that a test draws in an ordinary run.
	checks = "25"
)

func init() {
	if err := fix(flag.CommandLine); err != nil {
		panic(err)
	}
}

// fix sets the seed and the number of inputs unless the environment has. The
// command line is parsed later, so it wins.
func fix(flags *flag.FlagSet) error {
	if err := set(flags, "rapid.seed", "0", fixed); err != nil {
		return err
	}
	if prove.Long() {
		return nil
	}
	return set(flags, "rapid.checks", "100", checks)
}

// set sets a flag of rapid that still has rapid's own default.
func set(flags *flag.FlagSet, name, initial, value string) error {
	f := flags.Lookup(name)
	if f == nil {
		return fmt.Errorf("seeds: rapid no longer defines -%s: find its new name", name)
	}
	if f.Value.String() != initial {
		return nil
	}
	return f.Value.Set(value)
}
