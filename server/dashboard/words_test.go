package dashboard

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Running, queued and waiting are three words for three things.
func TestWordsOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for _, c := range []struct {
			status jobs.Status
			alarm  time.Time
			want   string
		}{
			{jobs.Executing, now.Add(time.Hour), "running"}, {jobs.Executing, time.Time{}, "running"},
			{jobs.Running, time.Time{}, "waiting"}, {jobs.Running, now.Add(time.Hour), "waiting"}, {jobs.Running, now, "queued"}, {jobs.Running, now.Add(-time.Hour), "queued"},
			{jobs.Failed, now.Add(-time.Hour), "failed"}, {jobs.Stuck, time.Time{}, "stuck"},
		} {
			if got := word(c.status, c.alarm); got != c.want {
				t.Errorf("%s with the alarm %v is %q, want %q", c.status, c.alarm, got, c.want)
			}
		}
	})
}

// A table shows a short value, and of others the size.
func TestPreview(t *testing.T) {
	for value, want := range map[string]string{
		"": "", `"a"`: `"a"`, strings.Repeat("x", maxPreview): strings.Repeat("x", maxPreview), strings.Repeat("x", maxPreview+1): "201 bytes", "\xff": "1 bytes",
	} {
		if got := preview([]byte(value)); got != want {
			t.Errorf("%q is shown as %q, want %q", value, got, want)
		}
	}
}
