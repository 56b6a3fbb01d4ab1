package object_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves A6, A7: an alarm becomes a dead letter when its next attempt would begin more than
// MaxElapsed after the time that was set, and not a nanosecond earlier.
func TestAlarmRetriesEndAfterMaxElapsed(t *testing.T) {
	for elapsed, want := range map[time.Duration]int{3 * time.Second: 4, 3*time.Second - 1: 3} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, object.ClassOptions{AlarmRetry: alarm.Retry{
				MaxAttempts: 100, Backoff: alarm.Constant(time.Second), MaxElapsed: elapsed,
			}})
			f.open()
			defer f.close()
			f.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { return errors.New("boom") })
			at := time.Now().Add(time.Minute)
			f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.SetAlarm(ctx, at) })
			time.Sleep(time.Hour)
			dead, err := lettersOf(f.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
			if err != nil || len(dead) != 1 || dead[0].Attempts != want {
				t.Errorf("MaxElapsed %v: dead letters %+v, %v; want one of %d attempts", elapsed, dead, err, want)
			}
		})
	}
}

// A mistake in the Retry of alarms is refused when the host is opened.
func TestAlarmRetryMistakes(t *testing.T) {
	for want, r := range map[string]alarm.Retry{
		"AlarmRetry: Retry.MaxAttempts must not be negative: -1":           {MaxAttempts: -1},
		"AlarmRetry: backoff: the first wait must not be negative":         {Backoff: alarm.Constant(-1)},
		"AlarmRetry has a RetryIf: return Permanent(err) from the handler": {RetryIf: func(error) bool { return true }},
	} {
		class := object.Define("retried", func(context.Context, *object.State) (*thing, error) { return &thing{}, nil }, object.ClassOptions{AlarmRetry: r})
		host, err := object.Open(object.Options{Dir: t.TempDir()}, class)
		if err == nil {
			host.Shutdown(context.Background())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}
