//go:build unix

package measure

import (
	"syscall"
	"time"
)

// Processor is the processor time that the process has used so far, in user mode
// and in the kernel, on all processors together. It is zero where the system does
// not tell.
func Processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
