package harness

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/docs"
)

// promise is a place in docs/CONTRACT.md: a number, and words of the sentence that
// is meant. Without words it is all that stands under the number.
type promise struct{ number, words string }

// The promises that the checkers check.
var (
	promiseUnit      = promise{"O6", "commit of its own"}
	promiseTurns     = promise{"O3", "never overlap"}
	promiseGate      = promise{"O7", "before every commit"}
	promisePrefix    = promise{"S9", "a prefix of the commit order"}
	promiseOneAlarm  = promise{"A1", "exactly one"}
	promiseEnds      = promise{"O13", "ends the host"}
	promiseEffects   = promise{"A4", "outside effects at least once"}
	promiseOrphan    = promise{"J5", "without an alarm"}
	promiseRepeats   = promise{"C3", "at most 1 + the failures and crashes"}
	promiseRecovered = promise{"R7", "with faults over"}
	promiseHandled   = promise{"M2", "exactly once"}
	promiseStuck     = promise{"F10", "stuck, and not failed"}
	promiseOneEnd    = promise{"F12", "exactly one end"}
	promiseOrder     = promise{"M3", "in the order of the sender's commits"}
	promiseTimers    = promise{"T4", "the time of the earliest timer"}
)

// String is the number and the sentence, such as "O3: handlers never overlap".
func (p promise) String() string {
	if p.number == "" {
		return ""
	}
	return p.number + ": " + p.sentence()
}

// own is a promise of the test itself, beside the promise of Holdfast on the same
// subject.
func own(what string, ours promise) string {
	return fmt.Sprintf("the test's own: %s. Holdfast itself promises %s", what, ours)
}

// sentence is the sentence of docs/CONTRACT.md.
func (p promise) sentence() string {
	text := contract()[p.number]
	if p.words == "" {
		return text
	}
	for _, s := range sentences(text) {
		if strings.Contains(s, p.words) {
			return s
		}
	}
	return text
}

// sentences splits a text after each full stop that a space follows.
func sentences(text string) []string {
	all := strings.SplitAfter(text, ". ")
	for i, s := range all {
		all[i] = strings.TrimSpace(s)
	}
	return all
}

// numbered finds a promise: its number, and its text up to the next one, a
// heading or an empty line.
var numbered = regexp.MustCompile(`(?m)^- \*\*([A-Z]+\d+)\*\* ((?:.+\n?(?:  .+\n?)*))`)

// contract is docs/CONTRACT.md by number, each promise on one line.
var contract = sync.OnceValue(func() map[string]string {
	all := make(map[string]string)
	for _, m := range numbered.FindAllStringSubmatch(docs.Contract, -1) {
		all[m[1]] = strings.Join(strings.Fields(strings.ReplaceAll(m[2], "`", "")), " ")
	}
	return all
})
