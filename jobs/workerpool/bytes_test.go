package workerpool_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// The rows of a partition are stored byte for byte as FORMAT.md tells, because stores of
// earlier versions have such rows.
func TestStoredBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		p := workerpool.New(config{
			Name: "tasks", Version: "v", Queues: map[string]int{"q": 2}, Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Minute)}, Retention: jobs.Retention{Completed: workerpool.AtOnce, Cancelled: workerpool.AtOnce},
		})
		h, _ := spied(t, mem, object.Options{}, p)
		add := func(in string, opts ...workerpool.Option) { must(p.Enqueue(ctx, h, in, opts...)) }
		add("dead", workerpool.Queue("q"))
		add("retry", workerpool.Priority(5))
		for _, c := range must(p.Claim(ctx, h, 2, 0)) {
			err := errors.New("no")
			if c.Task.In == "dead" {
				err = jobs.Permanent(err)
			}
			if err := p.Nack(ctx, h, c.Lease, err); err != nil {
				t.Fatal(err)
			}
		}
		add("a", workerpool.Key("k"), workerpool.Priority(-3), workerpool.Unique("u"))
		add("b", workerpool.Key("k"))
		add("c", workerpool.Delay(time.Second))
		if err := p.Pause(ctx, h); err != nil {
			t.Fatal(err)
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		var got []string
		rewrite(t, mem.Crash(0), func(all rows) {
			for key, value := range all {
				got = append(got, fmt.Sprintf("%+q %+q", key, value))
			}
		})
		slices.Sort(got)
		if text := strings.Join(got, "\n"); text != storedBytes {
			t.Errorf("stored is\n%s\nwant\n%s", text, storedBytes)
		}
	})
}

const storedBytes = `"c" "\x01\x01\x00\f\x05\x04\x00\x00\x01\x00\x02\x00\x05\x01\x00\x01\x80\x80\x98\xa4\uace6\xa3\x1a\x00\x02\x00\xc0\x84=\x01q\xa0\xc2\x1e"
"k/\x01k\x00\x00\x00\x00\x00\x00\x00\x03" "\x01\x00\x00\x00\x00\x00\x00\x00\x03"
"k/\x01k\x00\x00\x00\x00\x00\x00\x00\x04" "\x00\x00\x00\x00\x00\x00\x00\x00\x04"
"r/\x00\x00\x00\x00\x00\x00\x00\x03\xeb\x00\x00\x00\x00\x00\x00\x00\x03" "\x00\x00\x00\x00\x00\x00\x00\x03"
"t/\x00\x00\x00\x00\x00\x00\x00\x02" "\x01\x00\x02\n\x80\xe0\u04a8\xa9\xb7\xa6\xa3\x1a\x80\x80\x98\xa4\uace6\xa3\x1a\x00\x00\x00\x00\a\"retry\"\x00\xe7\x01{\"run\":{\"number\":1,\"attempt\":1,\"failures\":1,\"scheduled\":\"2000-01-01T00:00:00Z\",\"firstAt\":\"2000-01-01T00:00:00Z\",\"retryAt\":\"2000-01-01T00:01:00Z\",\"lastError\":\"no\"},\"failures\":[{\"attempt\":1,\"at\":\"2000-01-01T00:00:00Z\",\"error\":\"no\"}]}"
"t/\x00\x00\x00\x00\x00\x00\x00\x03" "\x01\x00\x03\x05\x00\x80\x80\x98\xa4\uace6\xa3\x1a\x00\x00\x01k\x00\x03\"a\"\x00\x0e{\"unique\":\"u\"}"
"t/\x00\x00\x00\x00\x00\x00\x00\x04" "\x01\x00\x04\x00\x00\x80\x80\x98\xa4\uace6\xa3\x1a\x00\x00\x01k\x00\x03\"b\"\x00\x00"
"t/\x00\x00\x00\x00\x00\x00\x00\x05" "\x01\x00\x05\x00\x80\xa8\xee\xdd\U000739a3\x1a\x80\x80\x98\xa4\uace6\xa3\x1a\x00\x00\x00\x00\x03\"c\"\x00\x00"
"u/u" "\x00\x00\x00\x00\x00\x00\x00\x03"
"v" "\x01\x01v"
"w/\r#L\u03cd\xdd\xca\x00\x00\x00\x00\x00\x00\x00\x00\x05" "\x00\x00\x00\x00\x00\x00\x00\x05"
"w/\r#L\xddJ\x8aX\x00\x00\x00\x00\x00\x00\x00\x00\x02" "\x00\x00\x00\x00\x00\x00\x00\x02"
"z/\x00\x00\x00\x00\x00\x00\x00\x01" "\x01\x03\x01\x00\x00\x80\x80\x98\xa4\uace6\xa3\x1a\x80\x80\x98\xa4\uace6\xa3\x1a\x00\x00\x01q\x06\"dead\"\x00\xdb\x01{\"run\":{\"number\":1,\"attempt\":1,\"failures\":1,\"scheduled\":\"2000-01-01T00:00:00Z\",\"firstAt\":\"2000-01-01T00:00:00Z\",\"lastError\":\"no\"},\"failures\":[{\"attempt\":1,\"at\":\"2000-01-01T00:00:00Z\",\"error\":\"no\"}],\"reason\":\"permanent\"}\x88\x80\x80\x80\x10"`
