package steps

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// Processes are the ids of the processes of a system beside this one: a flag.Value, as
// "123,456".
type Processes []int

// String implements flag.Value.
func (p *Processes) String() string {
	ids := make([]string, len(*p))
	for i, id := range *p {
		ids[i] = strconv.Itoa(id)
	}
	return strings.Join(ids, ",")
}

// Set implements flag.Value.
func (p *Processes) Set(s string) error {
	*p = nil
	for id := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(id)
		if err != nil {
			return fmt.Errorf("%q is no process id", id)
		}
		*p = append(*p, n)
	}
	return nil
}

// Processor is the processor time that this process, these processes and their children have
// used so far. That of others is read from /proc, in units of 10 ms.
func (p Processes) Processor() (time.Duration, error) {
	all := measure.Processor()
	if len(p) == 0 {
		return all, nil
	}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended since
		}
		s, err := parse(string(text))
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", file, err)
		}
		for _, id := range p {
			switch id {
			case s.id:
				found++
				all += s.used + s.usedByEnded
			case s.parent:
				all += s.used
			}
		}
	}
	if found < len(p) {
		return 0, fmt.Errorf("of processes %s %d are there", &p, found)
	}
	return all, nil
}

// stat is a part of the text of /proc/<id>/stat.
type stat struct {
	id, parent  int
	used        time.Duration // by the process, in user mode and in the kernel
	usedByEnded time.Duration // by its children that have ended
}

// tick is the unit of times in /proc/<id>/stat, the same on all processors that Go knows.
const tick = 10 * time.Millisecond

// parse parses the text of /proc/<id>/stat. Its second field is a name in parentheses, which
// may have spaces.
func parse(text string) (s stat, err error) {
	const id, parent, user, kernel, userOfEnded, kernelOfEnded = 1, 4, 14, 15, 16, 17
	name, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if name < 0 || end < name {
		return s, fmt.Errorf("%q has no name", text)
	}
	fields := append(strings.Fields(text[:name]), text[name:end+1])
	fields = append(fields, strings.Fields(text[end+1:])...)
	if len(fields) < kernelOfEnded {
		return s, fmt.Errorf("%q has no times", text)
	}
	number := func(field int) int {
		n, failed := strconv.Atoi(fields[field-1])
		err = errors.Join(err, failed)
		return n
	}
	s = stat{
		id: number(id), parent: number(parent),
		used:        time.Duration(number(user)+number(kernel)) * tick,
		usedByEnded: time.Duration(number(userOfEnded)+number(kernelOfEnded)) * tick,
	}
	return s, err
}
