package measure_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// TestProcessor: processor time grows while a goroutine computes, by no more
// than all processors have, and is told for each operation.
func TestProcessor(t *testing.T) {
	if measure.Processor() == 0 {
		t.Log("this system does not tell the processor time of a process")
		return
	}
	const ops = 10
	start, meters := time.Now(), measure.Start(nil)
	used := compute(5 * time.Millisecond)
	got := meters.PerOp(ops)[measure.ProcessorNanos]
	most := float64(time.Since(start)) * float64(max(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
	if got < float64(used)/ops || got > most/ops {
		t.Errorf("%v ns an operation: %v were used in all, and there were %v", got, used, time.Duration(most))
	}
}

// compute uses some processor time, and returns how much the process used meanwhile.
func compute(d time.Duration) time.Duration {
	before := measure.Processor()
	for n := 0; measure.Processor()-before < d; n++ {
		runtime.KeepAlive(n * n)
	}
	return measure.Processor() - before
}

// TestProcessorOfAWait: processor time does not pass while the process waits.
func TestProcessorOfAWait(t *testing.T) {
	waited := false
	for i := 0; i < 50 && !waited; i++ { // the collector may run beside a wait, but not beside all
		before := measure.Processor()
		time.Sleep(10 * time.Millisecond)
		waited = measure.Processor()-before < 5*time.Millisecond
	}
	if !waited {
		t.Error("each wait of 10 ms took 5 ms of a processor at least")
	}
}
