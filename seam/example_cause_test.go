package seam_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

func ExampleCause() {
	gone := errors.New("the client has gone")
	ctx, cancel := context.WithDeadlineCause(context.Background(), time.Unix(0, 0), gone)
	defer cancel()
	err := seam.Cause(ctx)
	fmt.Println(err, errors.Is(err, gone), errors.Is(err, context.DeadlineExceeded))
	// Output: the client has gone true true
}
