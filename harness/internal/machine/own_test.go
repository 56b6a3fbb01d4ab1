package machine_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/seam"
)

// A goroutine that the machine does not know ends when it calls into it: at once in
// a careful machine, in every machine when its process has died.
func TestIntruder(t *testing.T) {
	for name, c := range map[string]struct{ careful, dead bool }{"careful": {careful: true}, "dead": {dead: true}} {
		t.Run(name, func(t *testing.T) {
			m, p := start(t, machine.Config{Careful: c.careful, OnPoint: func(*machine.Process, seam.Point) bool { return c.dead }})
			went := false
			m.Crew().Lead(func() {
				p.Now() // the driver's own calls pass
				p.Go("task", func() { p.Now(); p.At(seam.Point{Name: "here"}) })
				m.Drive(machine.Epoch, nil)
				if err := m.Crew().Intruder(); err != nil || m.Failure() != nil {
					t.Errorf("calls of the driver and of a task: %v, %v", err, m.Failure())
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					p.Now()
					went = true
				}()
				<-done
				if out := m.Drive(machine.Epoch, nil); out != machine.Failed {
					t.Errorf("outcome %v", out)
				}
			})
			if err := m.Failure(); went || err == nil || !strings.Contains(err.Error(), "own_test.go:") {
				t.Errorf("went on %t, failure: %v", went, err)
			}
		})
	}
}
