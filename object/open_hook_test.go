package object_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/failing"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves O14: each Open calls the functions of AtOpen once, in no turn, with a host that serves
// calls. Their context ends at the begin of Shutdown, which waits until they have returned.
func TestAtOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		class := object.Define("thing", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil })
		method := object.Handle(class, "method", func(*struct{}, context.Context, int) (int, error) { return 7, nil })
		var mu sync.Mutex // the functions of AtOpen run at the same time
		began, ended := 0, time.Time{}
		var cause error
		for range 2 {
			class.AtOpen(func(ctx context.Context, h *object.Host, log *slog.Logger) {
				mu.Lock()
				began++
				mu.Unlock()
				if n, err := method.Call(ctx, h, "x", 0); n != 7 || err != nil {
					t.Errorf("a call gives %d, %v", n, err)
				}
				log.Info("at open")
				<-ctx.Done()
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				cause, ended = context.Cause(ctx), time.Now()
			})
		}
		var log loglines.Recorder
		for life := 1; life <= 2; life++ {
			h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1}, Logger: log.Logger()}, class)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if want := 2 * life; began != want || len(log.From(slog.LevelInfo)) != want || log.From(slog.LevelInfo)[0].String() != "INFO at open class=thing" {
				t.Errorf("%d have begun, the log says %s", began, log.Text(slog.LevelInfo))
			}
			time.Sleep(time.Hour)
			shutdown := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			if err := h.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			cancel()
			if !errors.Is(cause, object.ErrShutdown) || ended.Sub(shutdown) != time.Second || time.Since(shutdown) != time.Second {
				t.Errorf("ended %v after the begin of Shutdown with %v, and Shutdown %v", ended.Sub(shutdown), cause, time.Since(shutdown))
			}
		}
		time.Sleep(time.Hour) // a function that Shutdown has not waited for ends
	})
}

// Proves O13: the context of AtOpen ends when the store fails.
func TestAtOpenOnAFailingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		class := object.Define("thing", func(_ context.Context, st *object.State) (*hooked, error) { return &hooked{st}, nil })
		put := object.Handle(class, "put", func(x *hooked, ctx context.Context, n int) (int, error) {
			return n, x.st.Storage().Put(ctx, "k", n)
		})
		var cause error
		begun := false
		class.AtOpen(func(ctx context.Context, h *object.Host, _ *slog.Logger) {
			begun = true
			<-ctx.Done()
			cause = context.Cause(ctx)
		})
		for n := 1; cause == nil; n++ {
			disk := failing.At(n)
			h, err := object.Open(object.Options{Storage: storage.Options{Engine: disk.Engine(memstore.New()), Shards: 1}, Logger: slog.New(slog.DiscardHandler)}, class)
			if err != nil {
				continue
			}
			for range 100 {
				if _, err := put.Call(t.Context(), h, "x", 1); err != nil {
					break
				}
			}
			synctest.Wait()
			// Where the host's own goroutines have met the failure first, the function was not called.
			if err := h.Shutdown(context.Background()); !errors.Is(err, object.ErrStorage) || begun != errors.Is(cause, object.ErrStorage) {
				t.Errorf("the function has begun: %t, its context has ended with %v, Shutdown with %v", begun, cause, err)
			}
		}
	})
}

// hooked is an object that stores a number.
type hooked struct{ st *object.State }
