package object_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// stillClock stands at one moment, so that the stored bytes are the same each time.
type stillClock struct{ seam.Clock }

func (stillClock) Now() time.Time { return time.Unix(0, 1000).UTC() }

// The rows of a store with one object of everything. FORMAT.md shows the same
// bytes; a difference is a new format version.
func TestLayout(t *testing.T) {
	document, err := os.ReadFile("../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	f.options.Seams.Clock = stillClock{seam.Seams{}.WithDefaults().Clock}
	f.open()
	var image string
	f.must("bob", func(th *thing, ctx context.Context) (any, error) {
		st := th.st
		return nil, errors.Join(
			st.Storage().Put(ctx, "total", 499),
			st.Mark(ctx, "seen", []byte("yes"), time.Second),
			st.Emit(ctx, "added", 499),
			st.Driver().OpenExecution(ctx, []byte("data")),
			st.SetAlarm(ctx, time.Unix(3600, 0)),
		)
	}, object.Idempotent("key", time.Second))
	image += dump(t, f)
	f.close()

	// An alarm under way is in a flight row; a dead letter keeps the alarm's end.
	f.options.Seams.Clock = nil
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		under := make(chan struct{})
		var flight atomic.Value
		f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error {
			flight.Store(dump(t, f))
			close(under)
			return object.Permanent(errors.New("no"))
		})
		f.must("eve", setAlarm(time.Second))
		<-under
		f.close()
		image += rows(flight.Load().(string), "ffff00"+hex.EncodeToString([]byte("flight/")))
		f.open()
		image += rows(dump(t, f), "000107")
		f.close()
	})
	for line := range strings.SplitSeq(image, "\n") {
		if line != "" && !strings.Contains(string(document), "`"+line+"`") {
			t.Errorf("FORMAT.md does not show the row `%s`", line)
		}
	}
}

// rows are the lines of a dump that have a key with the prefix.
func rows(dump, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(dump) {
		if strings.HasPrefix(line, prefix) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// dump is every row of the store under the host, as FORMAT.md writes them.
func dump(t *testing.T, f *fixture) string {
	it, err := f.mem.NewIter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var b strings.Builder
	for ok := it.First(); ok; ok = it.Next() {
		v, _ := it.ValueAndErr()
		fmt.Fprintf(&b, "%s = %s\n", hex.EncodeToString(it.Key()), hex.EncodeToString(v))
	}
	return b.String()
}
