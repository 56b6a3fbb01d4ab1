package patterns

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
)

// The page shows the error of the compiler for a method that names itself, as a recent
// one words it.
func TestInitializationCycle(t *testing.T) {
	build := exec.Command("go", "build", "cycle.go")
	build.Dir = "testdata"
	out, err := build.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "initialization cycle") {
		t.Fatalf("testdata/cycle.go: %v\n%s", err, out)
	}
	isShown(t, "cycle.go:17:2: initialization cycle for Size\n\tcycle.go:17:2: Size refers to size\n\tcycle.go:20:18: size refers to Size")
}

func TestFoldersAskOneAnother(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		s.Host(Folders)
		s.Must(Keep.Call(s.Context(), s, "src", Contents{1, []string{"cmd", "net"}}))
		s.Must(Keep.Call(s.Context(), s, "cmd", Contents{2, nil}))
		s.Must(Keep.Call(s.Context(), s, "net", Contents{4, []string{"http"}}))
		s.Must(Keep.Call(s.Context(), s, "http", Contents{8, nil}))
		n, err := Size.Call(s.Context(), s, "src", none{})
		s.Always("the size is that of all", n == 15 && err == nil, n, err)
	})
}

func TestCrashJobTriggersItself(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		s.Host(Steps)
		s.OK(s.Retry(func() error {
			_, err := Steps.Start(s.Context(), s, "move", []string{"pack", "carry"})
			return err
		}))
		s.Advance(time.Minute)
		s.Finally("all steps are taken", func() error {
			left, err := Steps.State(s.Context(), s, "move")
			s.Always("no step is left", err != nil || len(left) == 0, left)
			return err
		})
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

func TestCrashHookNamesItsJob(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		s.Host(Probes)
		s.OK(s.Retry(func() error { _, err := Probes.Start(s.Context(), s, "door", Feed{}); return err }))
		s.Advance(time.Minute)
		s.Finally("the probe is paused", func() error {
			st, err := Probes.Status(s.Context(), s, "door")
			s.Always("it is paused", err != nil || st.Meta.Status == jobs.Paused, st.Meta.Status)
			return err
		})
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}
