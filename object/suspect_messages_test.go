package object_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// errand is a message of deadly: its handler does as the alarm of that name would.
type errand struct{ Name string }

// newDeadlyMail sends an errand to each of the receivers from one turn, and has the name of
// the errand decide whether it kills. The handlers share a receiver if to is not empty.
func newDeadlyMail(t *testing.T, work, delay time.Duration, to string, names ...string) *deadly {
	d := &deadly{
		fixture: newFixture(t), work: work, delay: delay,
		life: make(chan struct{}), runs: make(map[string]int), done: make(map[string]int), kill: make(chan struct{}, 16),
	}
	d.handleAlarm(func(th *thing, _ context.Context, _ object.AlarmInfo) error { return d.handle(th.st.Name()) })
	d.run = object.Handle(d.class, "run", func(_ *thing, _ context.Context, e errand) (int, error) { return 0, d.handle(e.Name) })
	d.open()
	d.send(to, names...)
	return d
}

// send sends an errand to each receiver, or all of them to one, from one turn.
func (d *deadly) send(to string, names ...string) {
	d.t.Helper()
	d.must("sender", func(th *thing, ctx context.Context) (any, error) {
		for _, name := range names {
			if err := d.run.Send(ctx, th.st, cmp.Or(to, name), errand{name}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
}

// Proves M5, A8. Case MS6: a message that kills its process each time becomes a dead letter,
// and none of those beside it does. The first process does not announce it, because it comes
// straight from its sender, so it takes one crash more than an alarm.
func TestKillingMessageIsFoundAmongMany(t *testing.T) {
	tests := []struct {
		name        string
		others      int
		work, delay time.Duration
		to          string
		killers     []string
		crashes     int
	}{
		{"alone", 0, 0, 0, "", []string{"killer"}, 7},
		{"among 200 receivers", 200, 10 * time.Second, 0, "", []string{"killer"}, 8},
		{"among 2000 receivers", 2000, time.Second, time.Second, "", []string{"killer"}, 7},
		{"in one queue of 200", 200, time.Second, 0, "all", []string{"killer"}, 7},
		{"late after the open", 0, time.Second, 5 * time.Second, "", []string{"killer"}, 7},
		{"two in one queue", 10, time.Second, 0, "all", []string{"killer", "zkiller"}, 12},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := newDeadlyMail(t, tt.work, tt.delay, tt.to, crowd(tt.others, tt.killers...)...)
				crashes := d.live(12 * time.Hour)
				letters, err := lettersOf(d.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
				if err != nil || len(letters) != len(tt.killers) || len(letters) > 0 && letters[0].Reason != "crashes" {
					t.Errorf("dead letters %+v, %v", letters, err)
				}
				if _, done := d.count(); done != tt.others {
					t.Errorf("%d are done, want %d", done, tt.others)
				}
				if crashes != tt.crashes {
					t.Errorf("%d crashes, want %d", crashes, tt.crashes)
				}
				if n, err := underWay(d.host.Store()); n != 0 || err != nil {
					t.Errorf("%d messages are left, %v", n, err)
				}
				d.close()
			})
		})
	}
}

// Proves M5, A8. Case MS6 at its greatest size: 10,000 messages are left by a process, four to a receiver. One
// of them kills its process each time, and so does an alarm beside them. Both become dead letters, all
// others are handled, and nothing is left.
func TestKillersAmongTenThousandMessages(t *testing.T) {
	const others = 10_000 - 1
	const most = 10 + 2 + 1 // among up to 65,536; one for each of the killers; one because a first process announces no message
	bubble(t, func(t *testing.T) {
		d := newDeadlyMail(t, 10*time.Second, time.Second, "")
		d.must("alarm killer", setAlarm(time.Second))
		d.must("sender", func(th *thing, ctx context.Context) (any, error) {
			for i, name := range crowd(others, "killer") {
				if err := d.run.Send(ctx, th.st, fmt.Sprint("r", i/4), errand{name}); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
		crashes := d.live(12 * time.Hour)
		letters, err := lettersOf(d.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
		dead := map[string]string{}
		for _, l := range letters {
			dead[l.ID.Name] = l.Kind + " " + l.Reason
		}
		want := map[string]string{"r0": object.DeadMessage + " crashes", "alarm killer": object.DeadAlarm + " crashes"}
		if !maps.Equal(dead, want) || len(letters) != 2 || err != nil {
			t.Errorf("dead letters %v, %v, want %v", dead, err, want)
		}
		if _, done := d.count(); done != others {
			t.Errorf("%d are done, want %d", done, others)
		}
		if crashes > most {
			t.Errorf("A8: %d crashes, want %d at most", crashes, most)
		}
		if n, err := underWay(d.host.Store()); n != 0 || err != nil {
			t.Errorf("%d messages are left, %v", n, err)
		}
		t.Log(crashes, "crashes")
		d.close()
	})
}
