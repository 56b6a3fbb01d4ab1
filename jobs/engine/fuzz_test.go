package engine

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs"
)

// A shortened text is a beginning of the text, and no shorter than need be.
func FuzzShorten(f *testing.F) {
	f.Add("short", 1)
	f.Add("ä", MaxTextBytes)
	f.Fuzz(func(t *testing.T, piece string, times int) {
		text := ""
		for range min(max(times, 0), 3*MaxTextBytes) {
			text += piece
			if len(text) > 2*MaxTextBytes {
				break
			}
		}
		got := Shorten(text)
		if len(got) > MaxTextBytes || text[:len(got)] != got || len(got) < len(text) && len(got) < MaxTextBytes-4 {
			t.Fatalf("%d bytes become %d", len(text), len(got))
		}
	})
}

// Metadata is read or refused. A process that reads it goes on from it without an
// execution that is not open, and does not lose its run. Stored again and read again it
// is the same: there is nothing to mend a second time.
func FuzzMeta(f *testing.F) {
	stored, err := json.Marshal(jobs.Meta{
		Type: "continuous", ID: "a", Status: jobs.Executing, CreatedAt: noon, UpdatedAt: noon, ExecutingAt: noon, ExecutionID: "t",
		RunCount: 3, Run: jobs.Run{Number: 4, Attempt: 1, FirstAt: noon},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(stored)
	f.Add([]byte(`{"status":"executing"}`))
	f.Add([]byte(`{"status":"initializing","runCount":18446744073709551615}`))
	f.Add([]byte(`{"status":"bogus","attempt":-1,"nextAt":"0001-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"updatedAt":"9999-12-31T23:59:59.999999999-23:59","status":"executing"}`))
	f.Add([]byte(`{"updatedAt":"9999-12-31T23:59:59.999999999-24:59","status":"executing"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m jobs.Meta
		if json.Unmarshal(b, &m) != nil {
			return
		}
		// Package time reads a zone of 24 hours and does not write one, so the first turn refuses such metadata.
		if _, err := json.Marshal(m); err != nil {
			return
		}
		for _, open := range []int{0, 1} {
			went := normal(m, open)
			if went.Status == jobs.Initializing || open == 0 && (went.Status == jobs.Executing || m.Status == jobs.Executing && (went.ExecutionID != "" || !went.ExecutingAt.IsZero())) {
				t.Fatalf("%s goes on as %+v with %d open", b, went, open)
			}
			if m.Status == jobs.Executing && open == 0 && nextRun(went, noon) != went.Run {
				t.Fatalf("%s loses its run: next is %+v", b, nextRun(went, noon))
			}
			once := encoded(t, went)
			var again jobs.Meta
			if err := json.Unmarshal(once, &again); err != nil {
				t.Fatalf("%s cannot be read: %v", once, err)
			}
			if twice := encoded(t, normal(again, open)); !bytes.Equal(once, twice) {
				t.Fatalf("%s is stored as %s, then as %s", b, once, twice)
			}
		}
	})
}

func encoded(t *testing.T, m jobs.Meta) []byte {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatalf("%+v cannot be stored: %v", m, err)
	}
	return b
}
