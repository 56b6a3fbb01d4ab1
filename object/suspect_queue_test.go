package object_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// charged returns the objects that the recovery report of the present process says are
// charged with a crash.
func (d *deadly) charged() (names []string) {
	lines, _ := d.host.Recoveries()
	for _, r := range lines {
		if r.Action == "charged" {
			names = append(names, r.ID.Name)
		}
	}
	return names
}

// tried reports whether a suspect of the object was tried alone in the present process.
func (d *deadly) tried(name string) bool {
	lines, _ := d.host.Recoveries()
	return slices.ContainsFunc(lines, func(r object.Recovery) bool { return r.ID.Name == name && r.Action == "tried alone" })
}

// lives has n killers end their process, one after another.
func (d *deadly) lives(n int) {
	for range n {
		<-d.kill
		d.die()
	}
}

// Proves M3, A8. While the head of a queue is a suspect, the messages behind it and new ones wait,
// and other receivers go on. When it is a dead letter, they come in their order.
func TestQueueWaitsBehindASuspect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDeadlyMail(t, 0, 5*time.Second, "queue", "killer", "b", "c")
		d.lives(4) // it is charged with the fourth crash, in the third process that announces it
		if got := d.charged(); !slices.Equal(got, []string{"queue"}) {
			t.Errorf("charged: %v", got)
		}
		d.send("queue", "d")
		d.send("other", "e")
		pass(5 * time.Second)
		if d.tried("queue") || d.done["e"] != 1 || len(d.done) != 1 {
			t.Errorf("done while the suspect is held back: %v", d.done)
		}
		if crashes := d.live(12 * time.Hour); crashes != 3 {
			t.Errorf("%d more crashes, want 3", crashes)
		}
		d.finishedMail(1, 4)
		d.close()
	})
}

// finishedMail checks that as many messages are dead letters, as many are done, and none is left.
func (d *deadly) finishedMail(dead, done int) {
	d.t.Helper()
	letters, err := lettersOf(d.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
	if err != nil || len(letters) != dead {
		d.t.Errorf("dead letters %+v, %v, want %d", letters, err, dead)
	}
	if _, n := d.count(); n != done {
		d.t.Errorf("%d are done, want %d: %v", n, done, d.done)
	}
	if n, err := underWay(d.host.Store()); n != 0 || err != nil {
		d.t.Errorf("%d messages are left, %v", n, err)
	}
}

// Proves M5, A8. A killer behind others is found in as few crashes as at the head, also if
// crashes with a cause outside came before it had begun.
func TestKillerBehindOthers(t *testing.T) {
	for outside := range 5 {
		t.Run(fmt.Sprint(outside, " from outside"), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				names := append(crowd(5), "killer", "last")
				d := newDeadlyMail(t, 20*time.Second, 5*time.Second, "queue", names...)
				for range outside {
					pass(time.Second)
					d.die()
				}
				crashes := d.live(12 * time.Hour)
				d.finishedMail(1, 6)
				if want := 7; crashes > want {
					t.Errorf("%d crashes, want at most %d", crashes, want)
				}
				d.close()
			})
		})
	}
}

// Proves A8, M3. Case SU2: crashes with a cause outside, at any rhythm, give up no message of a
// queue, and all are done soon after the last crash.
func TestCrashesFromOutsideGiveUpNoMessage(t *testing.T) {
	for name, rhythm := range rhythms {
		for _, work := range []time.Duration{0, 30 * time.Second} {
			t.Run(fmt.Sprint(name, " under work of ", work), func(t *testing.T) {
				for seed := range uint64(4) {
					bubble(t, func(t *testing.T) {
						r := rand.New(rand.NewPCG(seed, 21))
						d := newDeadlyMail(t, work, 0, "queue", crowd(70)...)
						d.send("", "n0100", "n0101")
						for range 20 {
							pass(rhythm(r))
							d.die()
						}
						pass(time.Hour)
						d.finishedMail(0, 72)
						d.close()
					})
				}
			})
		}
	}
}

// Proves A8. An alarm and a message of one object that both kill are each found, and each
// becomes a dead letter.
func TestKillingAlarmBesideAKillingMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDeadlyMail(t, time.Second, 5*time.Second, "")
		d.must("killer", setAlarm(time.Second))
		d.send("killer", "killer", "b", "c")
		crashes := d.live(24 * time.Hour)
		d.finishedMail(2, 2)
		if crashes > 13 {
			t.Errorf("%d crashes", crashes)
		}
		d.close()
	})
}

// Proves A8. The end of the activation during a trial does not clear the message on trial,
// because it has not begun: the mailbox of the ended activation has it, and a reader brings it
// again. So the crash that follows is charged to it, and to no other suspect.
func TestDeleteDuringATrialClearsNoSuspect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDeadlyMail(t, 40*time.Second, 5*time.Second, "", "killer", "other")
		d.lives(3)
		busy := make(chan struct{})
		go func() { // so that the message on trial waits in the mailbox
			defer close(busy)
			_, _ = d.call("killer", func(*thing, context.Context) (any, error) { time.Sleep(2 * time.Minute); return nil, nil })
		}()
		for !d.tried("killer") {
			pass(100 * time.Millisecond)
		}
		deleted := make(chan struct{})
		go func() { // if the message, which is read again, comes first, it kills the process before the turn of the Delete
			defer close(deleted)
			_ = d.host.Delete(context.Background(), d.id("killer"))
		}()
		d.lives(1)
		if got := d.charged(); !slices.Equal(got, []string{"killer"}) {
			t.Errorf("charged: %v", got)
		}
		d.live(12 * time.Hour)
		d.finishedMail(1, 1)
		<-busy
		<-deleted
		d.close()
	})
}

// Proves A8. A message that was read again because its activation has ended during the trial
// ends the trial when it has ended, and not the limit of the trial.
func TestTrialEndsWithTheMessageThatWasReadAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDeadlyMail(t, time.Second, 5*time.Second, "", "killer")
		d.lives(3)
		d.mu.Lock()
		d.tame = true
		d.mu.Unlock()
		busy := make(chan struct{})
		go func() {
			defer close(busy)
			_, _ = d.call("killer", func(*thing, context.Context) (any, error) { time.Sleep(time.Minute); return nil, nil })
		}()
		for !d.tried("killer") {
			pass(100 * time.Millisecond)
		}
		deleted := make(chan error, 1)
		go func() { // its turn runs before or after the message, which is read again beside it
			deleted <- d.host.Delete(context.Background(), d.id("killer"))
		}()
		for _, want := range []struct {
			after time.Duration
			phase byte // 2: on trial, 0: no suspects
		}{{900 * time.Millisecond, 2}, {200 * time.Millisecond, 0}} {
			pass(want.after)
			if row, _, err := d.host.Store().Meta("suspects"); err != nil || row[1] != want.phase {
				t.Errorf("the row of the suspects is %x, %v, want phase %d", row, err, want.phase)
			}
		}
		if err := <-deleted; err != nil {
			t.Error(err)
		}
		d.finishedMail(0, 1)
		<-busy
		d.close()
	})
}

// Proves M4, A8. Delete with messages removes a suspect that is held back, and a message that is
// sent after it does not wait for the trial.
func TestDeleteOfAHeldSuspect(t *testing.T) {
	for _, with := range []bool{true, false} {
		t.Run(fmt.Sprint("with messages ", with), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				d := newDeadlyMail(t, 0, time.Minute, "queue", "killer", "b")
				d.lives(4) // so that it is held back for two minutes
				pass(time.Second)
				var opts []object.DeleteOption
				if with {
					opts = append(opts, object.WithMessages())
				}
				if err := d.host.Delete(context.Background(), d.id("queue"), opts...); err != nil {
					t.Error(err)
				}
				d.send("queue", "later")
				pass(time.Second)
				if _, done := d.count(); (done == 1) != with {
					t.Errorf("done: %v", d.done)
				}
				d.live(12 * time.Hour)
				if with {
					d.finishedMail(0, 1)
				} else {
					d.finishedMail(1, 2)
				}
				d.close()
			})
		})
	}
}

// Proves M3, A8. After crashes in a row a handler that lends its turn out still meets the
// message behind it, for which it waits, whether or not it is a suspect itself.
func TestLentTurnMeetsTheNextMessageAfterCrashes(t *testing.T) {
	for crashes := 1; crashes <= 4; crashes++ {
		t.Run(fmt.Sprint(crashes, " crashes"), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFixture(t)
				var log []string
				life, woken := 0, make(chan struct{})
				run := object.Handle(f.class, "run", func(th *thing, ctx context.Context, e errand) (int, error) {
					if life < crashes {
						<-ctx.Done()
						return 0, ctx.Err()
					}
					log = append(log, e.Name)
					switch e.Name {
					case "waits":
						if err := th.st.Await(ctx, woken); err != nil {
							return 0, err
						}
					case "wakes":
						close(woken)
					}
					log = append(log, e.Name+" no more")
					return 0, nil
				})
				f.open()
				f.must("sender", func(th *thing, ctx context.Context) (any, error) {
					return nil, errors.Join(run.Send(ctx, th.st, "r", errand{"waits"}), run.Send(ctx, th.st, "r", errand{"wakes"}))
				})
				for range crashes {
					pass(time.Second)
					survives := f.mem.Crash(0)
					_ = f.host.Shutdown(ended())
					synctest.Wait()
					f.mem = survives
					life++
					f.open()
				}
				pass(time.Minute)
				if got, want := strings.Join(log, ", "), "waits, wakes, wakes no more, waits no more"; got != want {
					t.Errorf("%s, want %s", got, want)
				}
				f.close()
			})
		})
	}
}

// Proves M3. A message that joins a backlog while the reader waits for the disk is read when the
// reader goes on, and not a millisecond later.
func TestReaderGoesOnAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		var log []string
		fails := true
		f.handleConstruct(func(_ context.Context, th *thing) error {
			if th.st.Name() == "r" && fails {
				return errDied
			}
			return nil
		})
		run := object.Handle(f.class, "run", func(_ *thing, _ context.Context, e errand) (int, error) { log = append(log, e.Name); return 0, nil })
		send := func(name string) action {
			return func(th *thing, ctx context.Context) (any, error) { return nil, run.Send(ctx, th.st, "r", errand{name}) }
		}
		f.open()
		f.must("sender", send("a"))
		synctest.Wait()
		survives := f.mem.Crash(0)
		_ = f.host.Shutdown(ended())
		f.mem = survives
		d := f.slow()
		f.open()
		pass(500 * time.Millisecond) // the receiver is paused for a second
		fails = false
		d.hold.Store(true)
		pass(time.Second) // its reader waits for the sync that announces the first message
		f.must("sender", send("b"), object.Unconfirmed())
		if len(log) != 0 {
			t.Errorf("handled before the first is announced: %v", log)
		}
		d.hold.Store(false)
		close(d.gate)
		synctest.Wait() // no time passes
		if !slices.Equal(log, []string{"a", "b"}) {
			t.Errorf("handled at once: %v", log)
		}
		f.close()
	})
}
