package main

import (
	"os/exec"
	"testing"
	"time"
)

// Case HN2: a life that hangs in Open fails the campaign, and so does a life that does
// not end when it is told to.
func TestStuckLifeIsNoKill(t *testing.T) {
	for _, c := range []struct {
		name string
		pass []moment
		l    life
		want string
	}{
		{"in Open", []moment{began}, life{kind: killed, from: opened, within: time.Millisecond}, stuck},
		{"before it began", nil, life{kind: terminated, from: began, within: time.Millisecond}, stuck},
		{"after the open", []moment{began, opened}, life{kind: killed, from: opened, within: time.Hour}, shot},
		{"at its end", nil, life{kind: finished, within: time.Millisecond}, hung},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("sleep", "600")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			log, over := newClock(), make(chan struct{})
			for _, m := range c.pass {
				log.pass(m)
			}
			go func() {
				_ = cmd.Wait()
				close(over)
			}()
			if how := stop(t.Context(), cmd.Process, c.l, log, over); how != c.want {
				t.Errorf("the life ended as %q, want %q", how, c.want)
			}
		})
	}
}
