package realtime

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/fulldisk"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves O17, F6. The function of an Atomic meets object.ErrNoSpace, for ten minutes or for a moment. The
// run is not stuck: it goes on within two seconds of the end of that, at no cost, with one effect.
func TestAtomicGoesOnWithSpace(t *testing.T) {
	for name, brief := range map[string]bool{"for ten minutes": false, "for a moment": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := fulldisk.New()
				var host *object.Host
				var met atomic.Int32
				w := workflow.New[int, int]("run", workflow.Config{})
				w.Func(func(c *workflow.Context, _ int) (int, error) {
					return workflow.Atomic(c, "atomic", func(ctx context.Context, tx *workflow.Tx) (int, error) {
						if met.Add(1) == 1 {
							disk.SetFull(true)
							defer disk.SetFull(!brief)
						}
						time.Sleep(200 * time.Millisecond) // so that the store looks
						if err := tx.Put(ctx, "k", []byte{byte(met.Load())}); err != nil {
							return 0, err
						}
						return spillIt.Call(ctx, host, "a", 7)
					})
				})
				var err error
				if host, err = openOn(disk, w, spill); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = host.Shutdown(ended()) }) // else a test that fails would hang
				if _, err := w.Start(t.Context(), host, "a", 0); err != nil {
					t.Fatal(err)
				}
				time.Sleep(500 * time.Millisecond)
				if !brief {
					time.Sleep(10 * time.Minute)
				}
				st, err := w.Status(t.Context(), host, "a")
				if err != nil || st.Meta.Status != jobs.Executing || met.Load() < 1 {
					t.Errorf("after %d attempts: %s, %s, %v", met.Load(), st.Meta.Status, st.Meta.LastError, err)
				}
				disk.SetFull(false)
				began := time.Now()
				if v, err := w.Wait(t.Context(), host, "a"); v != 7 || err != nil {
					t.Errorf("%d, %v", v, err)
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("the run went on after %v", took)
				}
				if st, err = w.Status(t.Context(), host, "a"); err != nil || st.Meta.RecoveryAttempts != 0 || st.Meta.LastError != "" {
					t.Errorf("%+v, %v", st.Meta, err)
				}
				if err := host.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
