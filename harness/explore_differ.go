package harness

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Reasons for which two runs of one scenario differ, and their remedies.
const (
	disorder = "the order of a map, or a goroutine or select of your own: sort the keys before you range over them, and start work with State.Go"
	realTime = "time.Now or a timer of package time, instead of State.Now, Driver.Seams and SetAlarm"
	madeUp   = "a name or a value that is made up anew in each run, by math/rand, time.Now or a counter that outlives the scenario: " +
		"take randomness from Driver.Seams, and make the counter in the scenario"
	outlives = "state that outlives the scenario: a variable that it does not make itself, which the next run finds as the last one left it"
)

// likely is the most likely cause of the difference between two runs.
func likely(a, b []hit) string {
	switch {
	case sameCounts(a, b, func(h hit) seam.Point { return h.Point }):
		if sameOrder(a, b) {
			return realTime
		}
		return disorder
	case sameCounts(a, b, func(h hit) seam.Point { return seam.Point{Name: h.Name} }):
		return madeUp
	}
	return outlives
}

// unsteady tells that a workflow which does not repeat may be the cause, after another text, if
// workflows are hosted. Else it is empty.
func unsteady(defs []object.Definition) string {
	var names []string
	for _, d := range defs {
		if named, ok := d.(interface{ Name() string }); ok && isWorkflow(d) {
			names = append(names, named.Name())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "\nA workflow is hosted (" + strings.Join(names, ", ") + "): a function that does not do the same in each repeat, or a step that does not do the same " +
		"in each run, is a usual cause. In the function take the time and random numbers from Now and Rand of the Context, sort the keys of a map, and put what " +
		"comes from outside into a step; give a step its keys by workflow.Key, and make the services that it calls in the scenario. workflowtest.Run tells " +
		"the operation that differs"
}

// isWorkflow reports whether a definition is a workflow, by its type: this package does not
// import job types, so that their own tests can import it.
func isWorkflow(d object.Definition) bool {
	t := reflect.TypeOf(d)
	return t.Kind() == reflect.Pointer && strings.HasSuffix(t.Elem().PkgPath(), "/jobs/workflow") && strings.HasPrefix(t.Elem().Name(), "Workflow[")
}

// sameCounts reports whether both runs passed as many points of each key.
func sameCounts(a, b []hit, key func(hit) seam.Point) bool {
	left := make(map[seam.Point]int)
	for _, h := range a {
		left[key(h)]++
	}
	for _, h := range b {
		left[key(h)]--
	}
	for _, n := range left {
		if n != 0 {
			return false
		}
	}
	return true
}

func sameOrder(a, b []hit) bool {
	for i := range a {
		if a[i].place != b[i].place {
			return false
		}
	}
	return true
}

// difference names the first point at which two runs part.
func difference(a, b []hit) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return fmt.Sprintf("point %d is the end in the first, %s in the second", i+1, b[i].place)
		case i >= len(b):
			return fmt.Sprintf("point %d is %s in the first, the end in the second", i+1, a[i].place)
		case a[i].place != b[i].place:
			return fmt.Sprintf("point %d is %s in the first, %s in the second", i+1, a[i].place, b[i].place)
		case a[i].at != b[i].at:
			return fmt.Sprintf("point %d, %s, comes after %v in the first, after %v in the second", i+1, a[i].place, a[i].at, b[i].at)
		case a[i].unsynced != b[i].unsynced:
			return fmt.Sprintf("at point %d, %s, %d commits are unsynced in the first, %d in the second", i+1, a[i].place, a[i].unsynced, b[i].unsynced)
		}
	}
	return ""
}
