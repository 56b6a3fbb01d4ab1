package journeys

import "testing"

// Journey 2: "my job does not run". One command on the running service names the paused pool and the way out, and
// with that the task runs.
func TestPausedPool(t *testing.T) {
	s := start(t, t.TempDir())
	s.holdfast(0, "jobs", "do", "pause", "thumb")
	task := s.enqueue("thumb", `{"name": "cat.jpg"}`)

	has(t, s.holdfast(0, "why", "task", "thumb/"+task), "task thumb/"+task+"  pool-paused", "resume")

	s.holdfast(0, "jobs", "do", "resume", "thumb")
	has(t, s.holdfast(0, "tasks", "wait", "thumb/"+task), `"small-cat.jpg"`)
	has(t, s.holdfast(0, "why", "task", "thumb/"+task), "ended")
	s.stop()
}
