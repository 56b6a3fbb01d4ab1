package jobs_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Proves C2: a schedule that was stored has the occurrences that it had before.
func TestScheduleText(t *testing.T) {
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		schedule jobs.Schedule
		text     string
	}{
		{jobs.Schedule{}, "manual"},
		{jobs.Every(90 * time.Minute), "every 1h30m0s 0s"},
		{jobs.Rate(time.Millisecond), "rate 1ms 0s"},
		{jobs.Rate(time.Hour).WithJitter(time.Minute), "rate 1h0m0s 1m0s"},
		{jobs.Cron("0 0 9 1 * *", "Europe/Paris"), "cron Europe/Paris 0s 0 0 9 1 * *"},
		{jobs.Cron("@daily", "").WithJitter(time.Second), "cron UTC 1s @daily"},
		{jobs.Cron("30 2 * * *", "UTC"), "cron UTC 0s 30 2 * * *"},
	} {
		text, err := c.schedule.MarshalText()
		if err != nil || string(text) != c.text {
			t.Errorf("%s is %q, %v, want %q", c.schedule, text, err, c.text)
		}
		back := jobs.Every(time.Second) // each field is set
		if err := back.UnmarshalText(text); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		a, b := jobs.StartCursor(now), jobs.StartCursor(now)
		for range 5 {
			at, again := c.schedule.Due(a, "x"), back.Due(b, "x")
			if !at.Equal(again) {
				t.Errorf("%q: %v, and %v when it is read", text, at, again)
			}
			a.Last, b.Last = c.schedule.Next(a), back.Next(b)
		}
	}
}

// Proves C2: a mistake is neither written nor read.
func TestScheduleTextRefused(t *testing.T) {
	if text, err := jobs.Every(0).MarshalText(); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("a schedule with a mistake is %q, %v", text, err)
	}
	for _, text := range []string{
		"", "manual ", "manual 1s", "every", "every 1s", "every 1s 0s 0s", "every x 0s", "every 1s x", "every 1ns 0s", "every 1s -1s",
		"rate 1s", "rate x 0s", "cron UTC 0s", "cron UTC x * * * * *", "cron Nowhere 0s * * * * *", "cron UTC 0s * *", "daily 1s 0s",
	} {
		s := jobs.Rate(time.Hour)
		err := s.UnmarshalText([]byte(text))
		if !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), `"`+text+`"`) || s.String() != "rate 1h0m0s" {
			t.Errorf("%q: %v, and the schedule is %s", text, err, s)
		}
	}
}
