package engine

import (
	"context"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/object"
)

// batchAtOnce is the default of how many objects a call of many jobs calls at a time:
// enough that their commits share each sync, and few compared with the turns that a host
// can run.
const batchAtOnce = 64

// Each calls do with each index of names, and returns when all calls have. At most
// atOnce of them run at a time (zero means 64), each as a task of the host, and those
// of one name run one after another, in order. It is how job types call many jobs.
// It is not for a turn: a turn calls one object at a time.
func Each(h *object.Host, names []string, atOnce int, do func(i int)) {
	if atOnce <= 0 {
		atOnce = batchAtOnce
	}
	lines := byName(names)
	var next atomic.Int64
	workers := min(atOnce, len(lines))
	ended := make(chan struct{}, workers)
	for range workers {
		h.Seams().Executor.Go("batch", func() {
			defer func() { ended <- struct{}{} }()
			for n := next.Add(1) - 1; int(n) < len(lines); n = next.Add(1) - 1 {
				for _, i := range lines[n] {
					do(i)
				}
			}
		})
	}
	for range workers {
		_ = h.Seams().Executor.Wait(context.Background(), ended)
	}
}

// byName are the indexes of names, those of the same name together.
func byName(names []string) (lines [][]int) {
	line := make(map[string]int, len(names))
	for i, name := range names {
		n, ok := line[name]
		if !ok {
			n = len(lines)
			line[name], lines = n, append(lines, nil)
		}
		lines[n] = append(lines[n], i)
	}
	return lines
}
