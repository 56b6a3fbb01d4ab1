// Package patience stretches the times after which the server and its clients give up, for tests: a test over a real
// connection must not fail because the machine stands still for some seconds.
package patience

import (
	"strconv"
	"time"
)

// factor is a text, so that the linker can set it in a program that a test builds.
var factor = "1"

// Build is a flag of go build, by which a program has much patience.
const Build = "-ldflags=-X=github.com/holdfast-dev/holdfast/server/internal/patience.factor=" + much

const much = "10000"

// Have gives this process much patience. Call it before all else.
func Have() { factor = much }

// Times returns d, or in a test that has patience a time that no test waits for.
func Times(d time.Duration) time.Duration {
	n, _ := strconv.Atoi(factor) // it is always a number
	return time.Duration(n) * d
}
