package workerpool

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/storage"
)

// The bounds of each setting, on both sides, and the defaults of the documentation.
func TestBoundsOfConfig(t *testing.T) {
	queues := func(n int) map[string]int {
		m := make(map[string]int)
		for i := range n {
			m[fmt.Sprint(i)] = 1
		}
		return m
	}
	for name, c := range map[string]struct {
		config Config[int, int]
		wrong  bool
	}{
		"nothing":                     {Config[int, int]{}, false},
		"1024 partitions":             {Config[int, int]{Partitions: 1024}, false},
		"1025 partitions":             {Config[int, int]{Partitions: 1025}, true},
		"partitions less than zero":   {Config[int, int]{Partitions: -1, Concurrency: 1}, true},
		"concurrency of partitions":   {Config[int, int]{Partitions: 3, Concurrency: 3}, false},
		"concurrency below them":      {Config[int, int]{Partitions: 3, Concurrency: 2}, true},
		"one per key":                 {Config[int, int]{PerKey: 1}, false},
		"per key less than zero":      {Config[int, int]{PerKey: -1}, true},
		"one queued":                  {Config[int, int]{MaxQueued: 1}, false},
		"queued less than zero":       {Config[int, int]{MaxQueued: -1}, true},
		"64 queues":                   {Config[int, int]{Queues: queues(64)}, false},
		"65 queues":                   {Config[int, int]{Queues: queues(65)}, true},
		"a weight of 0":               {Config[int, int]{Queues: map[string]int{"a": 0}}, true},
		"a weight of 1000":            {Config[int, int]{Queues: map[string]int{"a": 1000}}, false},
		"a weight of 1001":            {Config[int, int]{Queues: map[string]int{"a": 1001}}, true},
		"a queue's name of 64 bytes":  {Config[int, int]{Queues: map[string]int{strings.Repeat("x", 64): 1}}, false},
		"a queue's name of 65 bytes":  {Config[int, int]{Queues: map[string]int{strings.Repeat("x", 65): 1}}, true},
		"a timeout less than zero":    {Config[int, int]{Timeout: -1}, true},
		"a lease less than zero":      {Config[int, int]{Lease: -1}, true},
		"ended tasks are not kept":    {Config[int, int]{Retention: jobs.Retention{Completed: AtOnce, Cancelled: AtOnce}}, false},
		"a retention below zero":      {Config[int, int]{Retention: jobs.Retention{Failed: -1}}, true},
		"gone before it is stale":     {Config[int, int]{Retention: jobs.Retention{Failed: 4, StaleAfter: 5}}, true},
		"gone as it is stale":         {Config[int, int]{Retention: jobs.Retention{Failed: 5, StaleAfter: 5}}, false},
		"attempts less than zero":     {Config[int, int]{Retry: jobs.Retry{MaxAttempts: -1}}, true},
		"a heartbeat less than zero":  {Config[int, int]{Heartbeat: -1}, true},
		"one attempt, and a deadline": {Config[int, int]{Retry: jobs.Retry{MaxAttempts: 1}, Timeout: 1}, false},
	} {
		d := c.config.untyped().withDefaults()
		d.Name = "pool"
		if err := d.validate(); errors.Is(err, jobs.ErrInvalid) != c.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
	d := (&Config[int, int]{}).untyped().withDefaults()
	if d.Partitions != 1 || d.Concurrency != 16 || d.PerKey != 1 || d.MaxQueued != 10_000_000 || d.Retention.Completed != time.Hour || d.Retry.MaxAttempts != 3 {
		t.Errorf("the defaults: %+v", d)
	}
	if d := (&Config[int, int]{Partitions: 17}).untyped().withDefaults(); d.Concurrency != 17 {
		t.Errorf("17 partitions run %d tasks at a time", d.Concurrency)
	}
}

// Proves W4: the key of a task chooses its partition; without a key its unique key does,
// and else its idempotency key. A repeat goes to the same partition, also with another
// input.
func TestRoute(t *testing.T) {
	p := New(Config[string, string]{Name: "p", Partitions: 64, Concurrency: 64})
	at := func(in string, o options) string { return p.route(nil, &submission[string]{In: in, Options: o}) }
	place := func(key string) string { return fmt.Sprint(jump(hash([]byte(key)), 64)) }
	places := make(map[string]bool)
	for i := range 20 {
		key := fmt.Sprint("key", i)
		places[place(key)] = true
		for name, o := range map[string]options{
			"key": {Key: key, Unique: "u", Once: "o"}, "unique key": {Unique: key, Once: "o"}, "idempotency key": {Once: key},
		} {
			if got := at(fmt.Sprint(i), o); got != place(key) {
				t.Errorf("%s %q goes to %s, want %s", name, key, got, place(key))
			}
		}
	}
	if len(places) < 10 {
		t.Errorf("20 keys go to %d of 64 partitions", len(places))
	}
	if at("a", options{}) != place(`"a"`) {
		t.Error("a task without keys, from a caller without a host, does not go by its input")
	}
	one := New(Config[string, string]{Name: "p"})
	if got := one.route(nil, &submission[string]{Options: options{Key: "key"}}); got != "0" {
		t.Errorf("of one partition, a task goes to %s", got)
	}
}

// Proves S9: numbers and places are read from the ends of keys that are long enough.
func TestNumbersOfKeys(t *testing.T) {
	at := place{major: 1 << 60, order: 7}
	whole := placed(nil, at)
	if got, err := placeOf(whole); err != nil || got != at {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := placeOf("more" + whole); err != nil || got != at {
		t.Errorf("behind a prefix: %+v, %v", got, err)
	}
	if _, err := placeOf(whole[1:]); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("a place of 15 bytes: %v", err)
	}
	if got, err := numberOf(numbered("", 9)); err != nil || got != 9 {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := numberOf(numbered("", 9)[1:]); !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("a number of 7 bytes: %v", err)
	}
	for n := range 17 {
		if _, err := decodeNumber(make([]byte, n)); errors.Is(err, storage.ErrCorrupt) != (n != 8) {
			t.Errorf("a value of %d bytes: %v", n, err)
		}
	}
}
