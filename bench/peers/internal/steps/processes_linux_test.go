package steps

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// TestProcessor counts this process, another one, and the children of that, both those that
// run and those that have ended. Only Linux has /proc/<id>/stat.
func TestProcessor(t *testing.T) {
	const work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo"
	for name, script := range map[string]string{
		"itself":          work + "; read x",
		"a running child": "exec 3<&0; (" + work + "; read x <&3) & read x; wait",
		"an ended child":  "(" + work + "); read x",
	} {
		t.Run(name, func(t *testing.T) {
			c := exec.Command("sh", "-c", script)
			in, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			_, err = out.Read(make([]byte, 1)) // the work is done
			alone := measure.Processor()
			both, failed := Processes{c.Process.Pid}.Processor()
			in.Close()
			_ = c.Wait() // with an error, because read meets the end of its input
			if err != nil || failed != nil {
				t.Fatal(err, failed)
			}
			used, got := c.ProcessState.UserTime()+c.ProcessState.SystemTime(), both-alone
			if used < 5*tick || got < used-4*tick || got > used+4*tick {
				t.Errorf("the processor time of the other is %v, want %v", got, used)
			}
		})
	}
}

// TestNoProcess tells of a process that is not there, whose time would be missed.
func TestNoProcess(t *testing.T) {
	const none = 1 << 30 // more than Linux has
	if _, err := (Processes{none}).Processor(); err == nil || !strings.Contains(err.Error(), "1073741824") {
		t.Errorf("a process that does not exist is told as %v", err)
	}
}
