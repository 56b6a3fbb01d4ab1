package jobs

import (
	"fmt"
	"strings"
	"time"
)

// MarshalText returns s as one line that UnmarshalText reads, so that a schedule can be
// stored: its kind, its period or zone, its jitter, and the cron expression. For example,
// Cron("0 9 * * *", "Europe/Paris") is "cron Europe/Paris 0s 0 9 * * *". The error is that
// of Validate.
func (s Schedule) MarshalText() ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	switch s.kind {
	case fixedDelay:
		return fmt.Appendf(nil, "every %s %s", s.period, s.jitter), nil
	case fixedRate:
		return fmt.Appendf(nil, "rate %s %s", s.period, s.jitter), nil
	case byCron:
		return fmt.Appendf(nil, "cron %s %s %s", s.cron.zone, s.jitter, s.cron.expr), nil
	}
	return []byte("manual"), nil
}

// UnmarshalText sets s to the schedule that MarshalText has written. Any other text is an
// ErrInvalid, and so is a zone that this machine does not know.
func (s *Schedule) UnmarshalText(text []byte) error {
	fields := strings.SplitN(string(text), " ", 4)
	if len(fields) == 1 && fields[0] == "manual" {
		*s = Schedule{}
		return nil
	}
	made, err := parseSchedule(fields)
	if err == nil {
		err = made.err
	}
	if err != nil {
		return fmt.Errorf("%w: schedule: read %q: %w", ErrInvalid, text, err)
	}
	*s = made
	return nil
}

// parseSchedule makes the schedule of the fields of a text: kind, period or zone, jitter
// and, of cron, the expression.
func parseSchedule(fields []string) (Schedule, error) {
	want := map[string]int{"every": 3, "rate": 3, "cron": 4}[fields[0]]
	if want == 0 || len(fields) != want {
		return Schedule{}, fmt.Errorf("it has no form of a schedule")
	}
	jitter, err := time.ParseDuration(fields[2])
	if err != nil {
		return Schedule{}, err
	}
	if fields[0] == "cron" {
		return Cron(fields[3], fields[1]).WithJitter(jitter), nil
	}
	period, err := time.ParseDuration(fields[1])
	if err != nil {
		return Schedule{}, err
	}
	if fields[0] == "every" {
		return Every(period).WithJitter(jitter), nil
	}
	return Rate(period).WithJitter(jitter), nil
}
