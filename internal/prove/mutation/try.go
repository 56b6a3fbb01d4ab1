package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// seams have the machine's clock, because the tests are real programs.
var seams = seam.Seams{}.WithDefaults()

// timed is a test, how long it takes without a mutation, and the processor time it uses.
type timed struct {
	name       string
	took, used time.Duration
}

// outcome is the end of a trial of one mutation.
type outcome int

const (
	survived  outcome = iota
	unreached         // survived, and no test runs the code
	found
	timedOut // found, because the tests hang
)

type result struct {
	mutation
	outcome   outcome
	elsewhere bool // found by the tests of a further package
}

// longest is how long tests may run. Those that take longer hang.
const longest = 10 * time.Minute

// unchanged runs each test alone without a mutation, and notes the mutations that it
// reaches. All must pass.
func (t *trial) unchanged(ctx context.Context) error {
	for _, s := range t.suites {
		tests, err := s.list(ctx, t.run)
		if err != nil {
			return err
		}
		reached, errs := make([][]int, len(tests)), make([]error, len(tests))
		t.each(len(tests), func(i int) { reached[i], errs[i] = s.reach(ctx, tests[i]) })
		for i, numbers := range reached {
			if errs[i] != nil {
				return errs[i]
			}
			for _, n := range numbers {
				s.reached[n] = append(s.reached[n], tests[i])
			}
		}
	}
	return nil
}

// reach runs a test without a mutation, and returns the numbers of those that it
// reaches.
func (s *suite) reach(ctx context.Context, test *timed) ([]int, error) {
	list := s.binary + "-reached-" + test.name
	began := seams.Steady()
	out, used, err := s.test(ctx, []string{test.name}, longest, reachedVariable+"="+list)
	if err != nil {
		return nil, fmt.Errorf("%s %s fails without a mutation: %w\n%s", s.name, test.name, err, bytes.TrimSpace(out))
	}
	test.took, test.used = seams.Steady().Sub(began), used
	text, err := os.ReadFile(list)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var numbers []int
	for field := range strings.FieldsSeq(string(text)) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("read the mutations that %s reaches: %w", test.name, err)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// tryAll tries the mutations, a few at a time, and gives the results to progress as
// they come. It returns those that came before ctx ended, in order.
func (t *trial) tryAll(ctx context.Context, ms []mutation, progress func(result)) []result {
	results := make([]*result, len(ms))
	var tell sync.Mutex
	t.each(len(ms), func(i int) {
		if ctx.Err() != nil {
			return
		}
		r := t.try(ctx, ms[i])
		if ctx.Err() != nil {
			return
		}
		tell.Lock()
		defer tell.Unlock()
		results[i] = &r
		progress(r)
	})
	var done []result
	for _, r := range results {
		if r != nil {
			done = append(done, *r)
		}
	}
	return done
}

// each calls f with 0 to n-1, a few at a time.
func (t *trial) each(n int, f func(i int)) {
	var running sync.WaitGroup
	free := make(chan struct{}, t.together)
	for i := range n {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			f(i)
		})
	}
	running.Wait()
}

// try runs the tests that reach a mutation, with it, until some find it: suite by
// suite, and of each first the quick ones, which find most, then the slower ones.
func (t *trial) try(ctx context.Context, m mutation) result {
	r := result{mutation: m, outcome: unreached}
	for i, s := range t.suites {
		if len(s.reached[m.Number]) == 0 {
			continue
		}
		for _, part := range quickFirst(within(s.reached[m.Number], t.most)) {
			r.outcome = t.tryWith(ctx, m, s, part)
			if r.outcome != survived {
				r.elsewhere = i > 0
				return r
			}
		}
	}
	return r
}

// within is the quickest tests that together take no longer than a time, at least
// one; all of them if the time is 0.
func within(tests []*timed, most time.Duration) []*timed {
	if most == 0 {
		return tests
	}
	sorted := byTime(tests)
	end := 1
	for end < len(sorted) && total(sorted[:end+1]) <= most {
		end++
	}
	return sorted[:end]
}

// byTime is the tests in the order of their time.
func byTime(tests []*timed) []*timed {
	return slices.SortedFunc(slices.Values(tests), func(a, b *timed) int { return cmp.Compare(a.took, b.took) })
}

// quickFirst parts the tests by the time that they take: those that together take up
// to a 64th of the time of all, the next up to a 16th, the next up to a quarter, and
// the others.
func quickFirst(tests []*timed) (parts [][]*timed) {
	sorted := byTime(tests)
	begin, all := 0, total(sorted)
	for _, share := range []time.Duration{64, 16, 4} {
		end := begin
		for end < len(sorted) && total(sorted[:end+1]) <= all/share {
			end++
		}
		if end > begin {
			parts = append(parts, sorted[begin:end])
			begin = end
		}
	}
	return append(parts, sorted[begin:])
}

// total is the time that tests take one after another.
func total(tests []*timed) (sum time.Duration) {
	for _, test := range tests {
		sum += test.took
	}
	return sum
}

// tryWith runs some tests of a suite with a mutation. They hang if they use many
// times their processor time, which other programs don't add to, or never end.
func (t *trial) tryWith(ctx context.Context, m mutation, s *suite, tests []*timed) outcome {
	var names []string
	var used time.Duration
	for _, test := range tests {
		names = append(names, test.name)
		used += test.used
	}
	processor := max(t.least, time.Duration(t.patience)*used)
	out, _, err := s.test(ctx, names, processor, onVariable+"="+strconv.Itoa(m.Number))
	switch {
	case err == nil:
		return survived
	case strings.Contains(err.Error(), "signal: killed"), bytes.Contains(out, []byte("panic: test timed out")):
		return timedOut
	}
	return found
}
