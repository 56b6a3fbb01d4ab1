package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// program runs a command of this module, given by its directory, on all cores and
// returns its output.
func (s *suite) program(ctx context.Context, step, dir string, args ...string) (out []byte, err error) {
	err = s.job(ctx, step, dir, cores, func() error {
		path, err := s.compile(ctx, step, dir, "build")
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Dir = s.root
		if out, err = s.output(ctx, step, cmd); err != nil {
			err = fmt.Errorf("go run ./%s %s: %w\n%s", dir, strings.Join(args, " "), err, failing(out))
		}
		return err
	})
	return out, err
}

// count adds the figures that a test or a program printed: the fields with names of
// the table in lines that are JSON objects. A field that is printed again, as its
// sum grows, counts once.
func (s *suite) count(out []byte) {
	last := values{}
	for l := range strings.Lines(string(out)) {
		var object map[string]any
		if json.Unmarshal([]byte(l), &object) != nil {
			continue
		}
		for _, f := range table {
			if n, ok := object[f.name].(float64); ok {
				last[f.name] = n
			}
		}
	}
	for name, n := range last {
		s.add(name, n)
	}
}

// mutants counts the bugs that were found.
func mutants(ctx context.Context, s *suite) error {
	out, err := s.program(ctx, "mutants", "internal/prove/mutants", "-json")
	var results []struct {
		Name, Why string
		Found     bool
	}
	if parse := json.NewDecoder(bytes.NewReader(out)).Decode(&results); parse != nil && err == nil {
		err = fmt.Errorf("output of internal/prove/mutants: %w", parse)
	}
	for _, r := range results {
		s.add("mutants_total", 1)
		if r.Found {
			s.add("mutants_found", 1)
		} else {
			err = errors.Join(fmt.Errorf("mutant %s: %s", r.Name, r.Why), err)
		}
	}
	return err
}

// kill kills a real program on the real disk.
func kill(ctx context.Context, s *suite) error {
	out, err := s.program(ctx, "kill", "internal/prove/killtest", "-program=all", "-json",
		fmt.Sprintf("-cycles=%.0f", s.floor("kill9_cycles")), fmt.Sprintf("-seed=%d", s.seed))
	s.count(out)
	return err
}

// files proves the store at the level of operations on files.
func files(ctx context.Context, s *suite) error {
	args := []string{fmt.Sprintf("-seed=%d", s.seed)}
	for _, f := range [][2]string{
		{"crashes", "fs_crash_points"}, {"errors", "fs_errors"}, {"children", "fs_errors_child"}, {"damages", "bit_flips"},
	} {
		args = append(args, fmt.Sprintf("-%s=%.0f", f[0], s.floor(f[1])))
	}
	_, out, err := s.test(ctx, testRun{step: "files", dir: "storage/storagetest", run: ".", args: args})
	s.count(out)
	return err
}

// histories checks calls of many threads, with crashes and with take-overs of a log, for linearizability.
func histories(ctx context.Context, s *suite) error {
	n := s.floor("histories")
	for _, r := range []testRun{
		{run: "^TestHistories$", args: []string{fmt.Sprintf("-histories=%.0f", n), fmt.Sprintf("-ops=%.0f", s.floor("history_ops")/n)}},
		{run: "^TestTakeovers$", args: []string{fmt.Sprintf("-takeovers=%.0f", s.floor("takeover_histories"))}},
	} {
		r.step, r.dir, r.width = "histories", "internal/prove/linearize", cores
		_, out, err := s.test(ctx, r)
		s.count(out)
		if err != nil {
			return err
		}
	}
	return nil
}

// cluster lets the nodes of a cluster fail at random, and compares their views with the log.
func cluster(ctx context.Context, s *suite) error {
	_, out, err := s.test(ctx, testRun{step: "cluster", dir: "cluster", run: "^TestPlans$", args: []string{
		fmt.Sprintf("-plans=%.0f", s.floor("cluster_plans")), fmt.Sprintf("-failovers=%.0f", s.floor("cluster_failovers")),
	}})
	s.count(out)
	return err
}

// synctest runs hosts on the real executor and virtual time, and cron tables in each
// time zone.
func synctest(ctx context.Context, s *suite) error {
	for _, r := range []testRun{
		{step: "synctest", dir: "internal/prove/realtime", run: ".", args: []string{"-days=30", "-years=10", "-rounds=12"}},
		{step: "synctest", dir: "jobs", run: "^TestCronOfEachZone$", args: []string{"-zones.all", "-zones.years=30"}},
	} {
		_, out, err := s.test(ctx, r)
		s.count(out)
		if err != nil {
			return err
		}
	}
	return nil
}
