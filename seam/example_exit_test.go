package seam_test

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/seam"
)

func ExampleExit() {
	s := seam.Seams{}.WithDefaults()
	ended := make(chan struct{})
	s.Executor.Go("visitor", func() {
		defer close(ended)
		defer fmt.Println("the deferred functions run")
		seam.Exit(s.Executor)
		fmt.Println("never printed")
	})
	<-ended
	// Output: the deferred functions run
}
