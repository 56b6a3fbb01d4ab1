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
	// limit is how long a test may take to find its mutant.
	limit = 2 * time.Second
	// patience is how long a test may run at all.
	patience = 30 * time.Second
	// together is how many tests run at a time.
	together = 2
)

// result is the end of the trial of one mutant.
type result struct {
	Number  int     `json:"number,omitempty"`
	Name    string  `json:"name"`
	Promise string  `json:"promise"`
	File    string  `json:"file"`
	Test    string  `json:"test"` // its package and name
	Found   bool    `json:"found"`
	Seconds float64 `json:"seconds"`       // of the run of the test with the mutant
	Told    string  `json:"told"`          // the promise that the failure itself names, if it does
	Message string  `json:"message"`       // the first line of the failure
	Why     string  `json:"why,omitempty"` // it does not count as found

	output string
}

// tryAll runs each mutant's test with it, and each test without any, and gives the
// results to progress as they come.
func (l *lab) tryAll(ctx context.Context, ms []mutant, progress func(result)) ([]result, error) {
	results := make([]result, len(ms))
	healthy := make(map[string]func() error)
	for _, m := range ms {
		healthy[m.Package+" "+m.Test] = sync.OnceValue(func() error { return l.passes(ctx, m) })
	}
	var tell sync.Mutex
	err := each(len(ms), func(i int) error {
		if err := healthy[ms[i].Package+" "+ms[i].Test](); err != nil {
			return err
		}
		results[i] = l.try(ctx, ms[i])
		tell.Lock()
		defer tell.Unlock()
		progress(results[i])
		return ctx.Err()
	})
	return results, err
}

// each calls f with 0 to n-1, a few at a time, and returns the first error.
func each(n int, f func(i int) error) error {
	var workers sync.WaitGroup
	errs := make([]error, n)
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	for range together {
		workers.Go(func() {
			for i := range next {
				if errs[i] = f(i); errs[i] != nil {
					return
				}
			}
		})
	}
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// passes runs the test without a mutant.
func (l *lab) passes(ctx context.Context, m mutant) error {
	out, took, err := l.test(ctx, m, "")
	if err != nil {
		return fmt.Errorf("without a mutant, %s %s fails after %s: %w\n%s", m.Package, m.Test, took, err, out)
	}
	if bytes.Contains(out, []byte("no tests to run")) {
		return fmt.Errorf("mutant %s: %s has no test %s", m.Name, m.Package, m.Test)
	}
	return nil
}

// try runs the test with the mutant. If it was slow, it gets two more tries, and each has as much
// more time as the machine is slower than that on which limit was set.
func (l *lab) try(ctx context.Context, m mutant) result {
	r := l.tryOnce(ctx, m, limit)
	for again := 0; r.Why == slow && again < 2; again++ {
		r = l.tryOnce(ctx, m, time.Duration(slowness()*float64(limit)))
	}
	return r
}

const slow = "found, but not within 2 s"

func (l *lab) tryOnce(ctx context.Context, m mutant, limit time.Duration) result {
	out, took, err := l.test(ctx, m, m.Name)
	r := result{
		Number: m.Number, Name: m.Name, Promise: m.Promise, File: m.File, Test: m.Package + " " + m.Test,
		Seconds: took.Seconds(), output: string(out),
	}
	r.Why = unfound(r.output, err)
	if r.Why == "" || took > limit {
		r.Message, r.Told = firstLine(r.output), told(r.output, m.Promise)
	}
	if r.Why == "" && took > limit {
		r.Why = slow
	}
	r.Found = r.Why == ""
	return r
}

// unfound says why a run of a test does not show that it finds the mutant.
func unfound(output string, err error) string {
	switch {
	case err == nil:
		return "the test passes"
	case strings.Contains(output, "panic: test timed out"):
		return "the test did not come to its end"
	case strings.HasPrefix(output, "panic: "), strings.Contains(output, "\npanic: "), strings.Contains(output, "\nfatal error: "):
		return "the test panicked"
	case !strings.Contains(output, "--- FAIL: "):
		return fmt.Sprintf("no test failed: %v", err)
	}
	return ""
}

// test runs one test in its package's directory. The time that it took is that of the processor if this is less, because
// other programs on the machine are no fault of the test.
func (l *lab) test(ctx context.Context, m mutant, switched string) (output []byte, took time.Duration, err error) {
	args := []string{"-test.run", pattern(m.Test), "-test.timeout", patience.String(), "-test.count", "1"}
	if l.rapid[m.Package] {
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime", "1ms") // a failure is enough, it need not be small
	}
	cmd := exec.CommandContext(ctx, l.binary(m.Package), args...)
	cmd.Dir = filepath.Join(l.root, m.Package)
	cmd.Env = append(os.Environ(), variable+"="+switched)
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

// told is the promise that a failure names, with preference for the given one.
func told(output, promise string) string {
	named := regexp.MustCompile(`\b([OSAJCDWR]\d{1,2}):`).FindAllStringSubmatch(output, -1)
	for _, m := range named {
		if m[1] == promise {
			return promise
		}
	}
	if len(named) > 0 {
		return named[0][1]
	}
	return ""
}
