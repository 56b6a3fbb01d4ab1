package seam_test

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/seam"
)

func ExampleOrdered() {
	words := []string{"read", "several", "files", "at", "a", "time"}
	count := func(i int) (int, error) { return len(words[i]), nil }
	err := seam.Ordered(seam.Seams{}, "count", len(words), count, func(i, letters int) error {
		fmt.Println(words[i], letters)
		return nil
	})
	fmt.Println(err)
	// Output:
	// read 4
	// several 7
	// files 5
	// at 2
	// a 1
	// time 4
	// <nil>
}
