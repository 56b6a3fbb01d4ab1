package harness

import (
	"strings"
	"testing"
)

// The sentences that a failure prints are those of docs/CONTRACT.md.
func TestPromisesAreThoseOfTheContract(t *testing.T) {
	for _, c := range []struct {
		promise promise
		begin   string
	}{
		{promiseTurns, "One turn at a time"},
		{promiseGate, "Output gate: nothing leaves the objects"},
		{promisePrefix, "Surviving commits are"},
		{promiseOneAlarm, "The object's row and the time index are one fact"},
		{promiseEffects, "So state changes happen exactly once"},
		{promiseOrphan, "Status running or executing without an alarm"},
		{promiseRepeats, "Executions of run n are at most"},
		{promiseRecovered, "Liveness: with faults over"},
		{promiseHandled, "So all that the handler writes after its last Sync"},
		{promiseStuck, "A run that cannot go on with this code is stuck"},
		{promiseOrder, "Messages from one object to another begin"},
		{promiseTimers, "In every stored state each name has exactly one timer"},
	} {
		said := c.promise.sentence()
		if !strings.HasPrefix(said, c.begin) || !strings.Contains(said, c.promise.words) || strings.Contains(said, "\n") {
			t.Errorf("%s says %q, which does not begin with %q", c.promise.number, said, c.begin)
		}
	}
	for number, text := range contract() {
		if len(text) < 30 || !strings.HasSuffix(text, ".") {
			t.Errorf("%s is cut: %q", number, text)
		}
	}
	if len(contract()) < 70 {
		t.Errorf("only %d promises are found", len(contract()))
	}
}
