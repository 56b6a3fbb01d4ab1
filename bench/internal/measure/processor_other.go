//go:build !unix

package measure

import "time"

// Processor is the processor time that the process has used so far, which this
// system does not tell: it is zero.
func Processor() time.Duration { return 0 }
