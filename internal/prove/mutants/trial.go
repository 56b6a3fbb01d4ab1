package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

const (
	// patience ends a test that hangs.
	patience = 10 * time.Minute
	// together is how many tests run at a time.
	together = 2
)

// result is the result of one mutant's trial.
type result struct {
	Name    string  `json:"name"`
	Promise string  `json:"promise"`
	Test    string  `json:"test"` // its package and name
	Found   bool    `json:"found"`
	Seconds float64 `json:"seconds"`       // the test took
	Slow    bool    `json:"slow"`          // it would take more than slowAfter at the reference pace
	Message string  `json:"message"`       // the first line of the failure
	Why     string  `json:"why,omitempty"` // it is not found

	output string
}

// tryAll runs each mutant's test with the mutant, and each test without one, and
// passes the results to progress as they come.
func (l *lab) tryAll(ctx context.Context, ms []mutant, progress func(result)) ([]result, error) {
	l.pace = pace()
	results := make([]result, len(ms))
	healthy := make(map[string]func() error)
	for _, m := range ms {
		healthy[m.dir+" "+m.test] = sync.OnceValue(func() error { return l.passes(ctx, m) })
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var tell sync.Mutex
	var running sync.WaitGroup
	free := make(chan struct{}, together)
	for i, m := range ms {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			if err := healthy[m.dir+" "+m.test](); err != nil {
				cancel(err)
			}
			if ctx.Err() != nil {
				return
			}
			results[i] = l.try(ctx, m)
			tell.Lock()
			defer tell.Unlock()
			progress(results[i])
		})
	}
	running.Wait()
	return results, context.Cause(ctx)
}

// passes runs the test without a mutant.
func (l *lab) passes(ctx context.Context, m mutant) error {
	out, took, err := l.test(ctx, m, "")
	if err != nil {
		return fmt.Errorf("without a mutant, %s %s fails after %s: %w\n%s", m.dir, m.test, took, err, out)
	}
	if bytes.Contains(out, []byte("no tests to run")) {
		return fmt.Errorf("mutant %s: %s has no test %s", m.name, m.dir, m.test)
	}
	return nil
}

// try runs the test with the mutant.
func (l *lab) try(ctx context.Context, m mutant) result {
	out, took, err := l.test(ctx, m, m.name)
	r := result{
		Name: m.name, Promise: m.promise, Test: m.dir + " " + m.test, Seconds: took.Seconds(),
		Slow: slow(took, l.pace), Message: firstLine(string(out)), Why: unfound(string(out), err), output: string(out),
	}
	r.Found = r.Why == ""
	return r
}

// unfound says why a test's run doesn't show that it finds the mutant.
func unfound(output string, err error) string {
	switch {
	case err == nil:
		return "the test passes"
	case strings.Contains(output, "panic: test timed out"):
		return "the test hangs"
	case strings.HasPrefix(output, "panic: "), strings.Contains(output, "\npanic: "), strings.Contains(output, "\nfatal error: "):
		return "the test panicked"
	case !strings.Contains(output, "--- FAIL: "):
		return fmt.Sprintf("no test failed: %v", err)
	}
	return ""
}

// test runs one test in its package's directory. took is the processor time if this
// is less, because it depends less on other programs.
func (l *lab) test(ctx context.Context, m mutant, switched string) (output []byte, took time.Duration, err error) {
	args := []string{"-test.run", pattern(m.test), "-test.timeout", patience.String(), "-test.count", "1"}
	if l.rapid[m.dir] {
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime", "1ms") // a failure is enough, it need not be small
	}
	cmd := exec.CommandContext(ctx, l.binary(m.dir), args...)
	cmd.Dir = filepath.Join(l.root, m.dir)
	cmd.Env = append(os.Environ(), "HOLDFAST_PROVE=1", variable+"="+switched) // because the place that finds it may be any
	began := seams.Steady()
	output, err = cmd.CombinedOutput()
	took = seams.Steady().Sub(began)
	if p := cmd.ProcessState; p != nil {
		took = min(took, p.UserTime()+p.SystemTime())
	}
	return output, took, err
}

// pattern is the argument of -run for exactly that test.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

var logged = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.*)$`)

// maxMessage bounds the bytes of a message; more of it is in the output.
const maxMessage = 200

// firstLine is the first line of a failure, without the report of a passed search.
func firstLine(output string) string {
	for _, m := range logged.FindAllStringSubmatch(output, -1) {
		if strings.HasPrefix(m[1], "harness: ") || strings.HasPrefix(m[1], "[rapid] ") {
			continue
		}
		if len(m[1]) > maxMessage {
			return strings.ToValidUTF8(m[1][:maxMessage], "") + " ..."
		}
		return m[1]
	}
	return ""
}
