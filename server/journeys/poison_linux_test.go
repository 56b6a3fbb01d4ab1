package journeys

import (
	"strings"
	"testing"
)

// Journey 3: a poison task. A person finds the dead tasks and their errors, mends the program, and replays all of one
// error. Those of another error stay.
func TestPoisonTask(t *testing.T) {
	s := start(t, t.TempDir())
	var torn []string
	for range 3 {
		torn = append(torn, s.enqueue("thumb", `{"name": "torn.jpg", "bad": true}`))
	}
	other := s.enqueue("thumb", `{"name": "other.jpg", "bad": true}`)
	for _, id := range append(torn, other) {
		has(t, s.holdfast(4, "tasks", "wait", "thumb/"+id), "task is dead", "is no picture")
	}
	if list := s.holdfast(0, "dead", "ls", "--kind", "task"); strings.Count(list, "torn.jpg is no picture") != 3 {
		t.Fatalf("the dead are\n%s", list)
	}
	s.stop()

	// While the program is mended, the directory tells the same.
	has(t, s.holdfast(0, "dead", "ls", "--error", "other.jpg"), "no server answers", "other.jpg is no picture")

	mended := start(t, s.dir, "-mended")
	has(t, mended.holdfast(4, "dead", "replay", "--error", "torn.jpg"), "nothing was changed", "act on 3 dead letters")
	has(t, mended.holdfast(0, "dead", "replay", "--error", "torn.jpg", "--yes"), "3 dead letters: 3 done, 0 skipped, 0 refused")
	for _, id := range torn {
		has(t, mended.holdfast(0, "tasks", "wait", "thumb/"+id), `"small-torn.jpg"`)
	}
	if left := mended.holdfast(0, "dead", "ls"); strings.Contains(left, "torn.jpg") || !strings.Contains(left, "other.jpg is no picture") {
		t.Errorf("left are\n%s", left)
	}
	mended.stop()
}
