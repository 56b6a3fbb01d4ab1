package storagetest

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
)

// The variables by which a child process learns its directory, its seed and its fault.
const (
	childDir   = "HOLDFAST_STORAGETEST_DIR"
	childSeed  = "HOLDFAST_STORAGETEST_SEED"
	childFault = "HOLDFAST_STORAGETEST_FAULT"
)

// ErrorsInChild lets operations fail, and kills the process before them, on the
// disk of this machine, each in a process of its own. If its store does not outlive
// the error, a process must end with a code other than 0, in any way; the
// next one finds every commit that it reported as durable.
//
// The test that calls it runs once more in each child, so it must do nothing else.
func ErrorsInChild(t testing.TB, open Opener, o Options) Figures {
	t.Helper()
	o = o.withDefaults()
	if os.Getenv(childDir) != "" {
		os.Exit(runChild(open, o))
	}
	sum := &tally{t: t, Figures: Figures{Operations: countOps(t, open, o)}}
	const kinds = faultKinds + 1
	numbers, wait := each(func(n int) { runParent(sum, open, o, n) })
	total := sum.Operations * kinds
	stride := o.stride(total, kinds)
	for n := int(o.Seed % uint64(stride)); n < total; n += stride {
		numbers <- n
	}
	wait()
	t.Logf("errors in a process of their own: seed %d, %d points of %d (%d operations, %d kinds); the process died of %d and outlived %d",
		o.Seed, sum.Points, total, sum.Operations, kinds, sum.Died, sum.Harmless)
	return sum.Figures
}

// childFaultOf is the fault with number n.
func childFaultOf(n int) fault {
	if n%(faultKinds+1) == faultKinds {
		return fault{op: n / (faultKinds + 1), kill: true}
	}
	return faultOf(n/(faultKinds+1)*faultKinds + n%(faultKinds+1))
}

// runParent runs the child with fault n and checks the store that it left. The child has the test's own
// timeout, so that one that hangs does not outlive the test for long.
func runParent(sum *tally, open Opener, o Options, n int) {
	t := sum.t
	tmp := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout="+flag.Lookup("test.timeout").Value.String())
	child.Env = append(os.Environ(), childDir+"="+tmp, childSeed+"="+strconv.FormatUint(o.Seed, 10), childFault+"="+strconv.Itoa(n))
	var out, errOut bytes.Buffer
	child.Stdout, child.Stderr = &out, &errOut
	err := child.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		sum.wrong("run %s: %v", child, err)
		return
	}
	subj := newSubject(open, o.Seed, o.Commits)
	subj.dir = filepath.Join(tmp, dir)
	done := false
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		what, number, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.ParseInt(number, 10, 64)
		switch what {
		case "begun":
			subj.issued.Store(n)
		case "durable":
			subj.acked.Store(n)
		case "done":
			done = true
		}
	}
	fault := childFaultOf(n)
	if (err == nil) != done {
		sum.wrong("seed %d: %v: the child ended with %v, and done is %v:\n%s", o.Seed, fault, err, done, &errOut)
	}
	if _, leftErr := subj.verify(vfs.Default); leftErr != nil {
		sum.wrong("seed %d: %v: after the child (%v): %v", o.Seed, fault, err, leftErr)
	}
	sum.add(fault.outcome(err))
}

// runChild is the main function of the child. It returns its exit code.
func runChild(open Opener, o Options) int {
	n, err := strconv.Atoi(os.Getenv(childFault))
	if err != nil {
		return 4
	}
	if o.Seed, err = strconv.ParseUint(os.Getenv(childSeed), 10, 64); err != nil {
		return 4
	}
	subj := newSubject(open, o.Seed, o.Commits)
	subj.dir = filepath.Join(os.Getenv(childDir), dir)
	subj.told = func(what string, n int) { fmt.Println(what, n) }
	fault := childFaultOf(n)
	fsys := crashfs.New(vfs.Default, func(op crashfs.Op) error {
		if fault.kill && op.Index == fault.op {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until the signal arrives
		}
		if fault.kill {
			return nil
		}
		return fault.before(op)
	})
	if err := twoLives(subj, fsys, o.Commits); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	fmt.Println("done")
	return 0
}
