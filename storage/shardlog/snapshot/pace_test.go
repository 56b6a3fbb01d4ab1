package snapshot

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// pacing are options that log to b.
func pacing(b *bytes.Buffer) *Options {
	return &Options{Seams: seam.Seams{}.WithDefaults(), Logger: slog.New(slog.NewTextHandler(b, nil))}
}

// Bytes are moved at the rate, and a move that was slow by itself is not made up for.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		p := pacing(&text).pace("work", 1000, 30_000)
		began := time.Now()
		after := func(want time.Duration) {
			t.Helper()
			if got := time.Since(began); got != want {
				t.Errorf("%v have passed, want %v", got, want)
			}
		}
		move := func(n int) {
			t.Helper()
			if err := p.moved(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		move(500)
		after(500 * time.Millisecond)
		move(1500)
		after(2 * time.Second)
		time.Sleep(7 * time.Second)
		move(1000)
		after(10 * time.Second)
		if strings.Contains(text.String(), "work") {
			t.Errorf("before 10 seconds: %s", text.String())
		}
		move(1000)
		if want := "msg=work doneBytes=4000 totalBytes=30000"; strings.Count(text.String(), want) != 1 {
			t.Errorf("after 10 seconds the log has no line %q: %s", want, text.String())
		}
	})
}

// Without a rate nothing waits, and the end of the context ends a wait with its cause.
func TestPaceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for _, rate := range []int64{0, -1} {
			if err := pacing(&bytes.Buffer{}).pace("work", rate, 0).moved(t.Context(), 1<<40); err != nil || time.Since(began) != 0 {
				t.Errorf("rate %d waited %v: %v", rate, time.Since(began), err)
			}
		}
		gone := errors.New("the node ends")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(gone) })
		p := pacing(&bytes.Buffer{}).pace("work", 1, 0)
		if err := p.moved(ctx, 3600); !errors.Is(err, gone) || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if err := p.moved(ctx, 0); !errors.Is(err, gone) {
			t.Errorf("the next move: %v", err)
		}
	})
}
