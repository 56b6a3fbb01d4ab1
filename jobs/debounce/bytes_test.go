package debounce_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// bare is an object of the class of a job, without its code.
type bare struct{ st *object.State }

func (bare) Alarm(context.Context, object.AlarmInfo) error { return nil }

// The rows of an object are stored byte for byte as FORMAT.md tells, because stores of
// earlier versions have such rows.
func TestStoredBytes(t *testing.T) {
	for _, folds := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, d := context.Background(), newDisk(t)
			c := debounce.Config[string, []string]{
				Name: "job", Version: "v", Quiet: time.Minute, MaxEvents: 2, Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Hour)},
				Flush: func(context.Context, *debounce.Flush[string, []string]) error { return errors.New("not yet") },
			}
			if folds {
				c.Reduce = func(state []string, _ bool, ev string) ([]string, error) { return append(state, ev), nil }
			}
			job := debounce.New(c)
			h := d.open(object.Options{}, job)
			for _, ev := range []string{"a", "b", "c"} {
				if _, err := job.Add(ctx, h, "x", ev); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			d.shut(h)
			class := object.Define("job", func(_ context.Context, st *object.State) (*bare, error) { return &bare{st}, nil })
			var got []string
			list := object.Handle(class, "list", func(b *bare, ctx context.Context, _ int) (int, error) {
				for item, err := range b.st.Storage().List(ctx, object.ListOptions{}) {
					if err != nil {
						return 0, err
					}
					if item.Key != "meta" {
						got = append(got, fmt.Sprintf("%+q %+q", item.Key, item.Value))
					}
				}
				return 0, nil
			})
			h = d.open(object.Options{}, class)
			if _, err := list.Call(ctx, h, "x", 0); err != nil {
				t.Fatal(err)
			}
			d.shut(h)
			slices.Sort(got)
			if text := strings.Join(got, "\n"); text != storedBytes[folds] {
				t.Errorf("with Reduce: %t: stored is\n%s\nwant\n%s", folds, text, storedBytes[folds])
			}
		})
	}
}

var storedBytes = map[bool]string{
	false: `"b" "\x01\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\x04\x00\x80\x80\x98\xa4\uace6\xa3\x1a\x80\x80\x98\xa4\uace6\xa3\x1a\x80\x80\x98\xa4\uace6\xa3\x1a\x00\x80\x80\x98\xa4\uace6\xa3\x1a\tmaxEvents\x00\x00\x00\x03\x00\x01v\x03\x00\x01v"
"e/000000000001/00000000" "\x01\x01\x02\x00\x80\x80\x98\xa4\uace6\xa3\x1a\x80\x80\x98\xa4\uace6\xa3\x1a\x00\x00\x00\x00\"a\""
"e/000000000001/00000001" "\x01\x01\x04\x00\x80\x80\x98\xa4\uace6\xa3\x1a\x80\x80\x98\xa4\uace6\xa3\x1a\x80\x80\x98\xa4\uace6\xa3\x1a\x00\x00\x00\"b\""
"e/000000000002/00000000" "\x01\x02\x02\x00\x80\x80\x98\xa4\uace6\xa3\x1a\x80\x80\x98\xa4\uace6\xa3\x1a\x00\x00\x00\x00\"c\""`,
	true: `"b" "\x01\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\x04\x02\x80\x80\x98\xa4\uace6\xa3\x1a\x80\x80\x98\xa4\uace6\xa3\x1a\x80\x80\x98\xa4\uace6\xa3\x1a\x00\x80\x80\x98\xa4\uace6\xa3\x1a\tmaxEvents\x00\x00\x00\x03\x00\x01v\x03\x00\x01v"
"s/000000000001" "\x01\x01\x04\x02\x80\x80\x98\xa4\uace6\xa3\x1a\x80\x80\x98\xa4\uace6\xa3\x1a\x80\x80\x98\xa4\uace6\xa3\x1a\x00\x00\x00[\"a\",\"b\"]"
"s/000000000002" "\x01\x02\x02\x02\x80\x80\x98\xa4\uace6\xa3\x1a\x80\x80\x98\xa4\uace6\xa3\x1a\x00\x00\x00\x00[\"c\"]"`,
}
