package harness_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
)

// The fuzzer's bytes choose crashes and faults, and nothing breaks.
func FuzzCarts(f *testing.F) {
	harness.Fuzz(f, clients, harness.AllowFaults(allFaults), harness.NoLostAck, harness.OneAlarm)
}

const fuzzBug = "HARNESS_TEST_FUZZ_BUG"

// FuzzWithBug fails where TestFuzzFindsABug asks for it.
func FuzzWithBug(f *testing.F) {
	bug := ""
	if os.Getenv(fuzzBug) != "" {
		bug = "two commits"
	}
	harness.Fuzz(f, ledgerScenario(bug))
}

// An input of the fuzzer that fails prints the same report as Exhaust.
func TestFuzzFindsABug(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^FuzzWithBug$")
	cmd.Env = append(os.Environ(), fuzzBug+"=1", "HOLDFAST_CRASHTEST=") // the inputs find the bug with the options of the test
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("no input of Fuzz finds the bug")
	}
	mustSay(t, string(out), "--- FAIL: FuzzWithBug/seed#", ", debit is ", `harness.Replay(t, scenario, "v1:seed=`, ":crash=")
}
