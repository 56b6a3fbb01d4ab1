// Package seeds fixes the seed of the property tests of this repository, so that
// go test does the same in each run. A test package that draws its inputs imports
// it for that effect alone; a test of internal/lint sees to it.
//
// The flag -rapid.seed and the variable RAPID_SEED choose another seed, and
// -rapid.seed=0 a random one. internal/prove/reliability runs the property tests with a seed
// that follows from the commit.
package seeds

import (
	"flag"
	"fmt"

	_ "pgregory.net/rapid" // defines the flag, before this package is initialized
)

// fixed is the seed of a run that names none. Its value does not matter.
const fixed = "20250711"

func init() {
	if err := fix(flag.CommandLine); err != nil {
		panic(err)
	}
}

// fix sets the seed, unless the environment has. The command line is read later,
// and so wins.
func fix(flags *flag.FlagSet) error {
	f := flags.Lookup("rapid.seed")
	if f == nil {
		return fmt.Errorf("seeds: rapid has no flag -rapid.seed any more: find its new name")
	}
	if f.Value.String() != "0" {
		return nil
	}
	return f.Value.Set(fixed)
}
