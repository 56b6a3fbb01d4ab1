package seam_test

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/seam"
)

func ExampleGuard() {
	var prices map[string]int
	err := seam.Guard(func() error {
		prices["tea"] = 499
		return nil
	}, func(p *seam.PanicError) error { return fmt.Errorf("set the price: %w", p) })
	fmt.Println(err)
	// Output: set the price: panic: assignment to entry in nil map
}
