package object_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Proves O2: Open with WaitForLock waits for the process that has the directory, and logs
// that it waits. Without WaitForLock it fails at once.
func TestOpenWaitsForTheDirectory(t *testing.T) {
	waits := make(chan string, 1) // the first line that is logged
	r := loglines.Recorder{Tell: func(l loglines.Line) {
		if l.Level >= slog.LevelInfo && len(waits) == 0 {
			waits <- l.String()
		}
	}}
	o := object.Options{Dir: t.TempDir(), Logger: r.Logger()}
	first, err := object.Open(o, Counters)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := object.Open(o, Counters); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("O2: a second host: %v, %v", h, err)
	}
	o.WaitForLock = 24 * time.Hour
	opened := make(chan error)
	go func() {
		second, err := object.Open(o, Counters)
		if err == nil {
			err = second.Shutdown(context.Background())
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("O2: it did not wait: %v", err)
	case got := <-waits:
		if !strings.Contains(got, "wait") {
			t.Errorf("O2: logged %s", got)
		}
	}
	if err := first.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("O2: the host that waited: %v", err)
	}
}
