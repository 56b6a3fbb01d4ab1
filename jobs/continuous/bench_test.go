package continuous_test

import (
	"context"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// BenchmarkRun is one run of one job, begin and end batch, each durable (P15).
func BenchmarkRun(b *testing.B) {
	done := make(chan struct{})
	last := uint64(b.N)
	j := continuous.New(continuous.Config[int]{
		Name: "job",
		Run: func(_ context.Context, run *continuous.Run[int]) error {
			run.State++
			if run.Number < last {
				run.NextAt(run.Scheduled)
			} else {
				close(done)
			}
			return nil
		},
	})
	h, err := object.Open(object.Options{Dir: b.TempDir()}, j)
	if err != nil {
		b.Fatal(err)
	}
	defer h.Shutdown(context.Background())
	b.ResetTimer()
	if _, err := j.Start(b.Context(), h, "a", 0); err != nil {
		b.Fatal(err)
	}
	<-done
}
