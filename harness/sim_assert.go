package harness

import (
	"fmt"
	"time"
)

// Always fails the run if ok is false. Handlers and clients may call it.
func (s *Sim) Always(name string, ok bool, detail ...any) {
	if !ok {
		s.Errorf("always %q does not hold: %s", name, fmt.Sprint(detail...))
	}
}

// Sometimes names a situation that the test is meant to reach: it fails if ok is
// true in none of the schedules. Handlers and clients may call it.
func (s *Sim) Sometimes(name string, ok bool) { s.sometimes[name] = s.sometimes[name] || ok }

// Eventually lets time pass until fn holds, and ends the run as failed if it does
// not hold within the limit. It looks at each second.
func (s *Sim) Eventually(within time.Duration, name string, fn func() bool) {
	s.onDriver("Eventually")
	s.RunUntilIdle()
	for limit := s.Now().Add(within); !fn(); s.Advance(min(time.Second, limit.Sub(s.Now()))) {
		if !s.Now().Before(limit) {
			s.Fatalf("%q does not come true within %v", name, within)
		}
	}
}

// Finally makes a check of the run when the scenario has settled.
func (s *Sim) Finally(name string, ok func() error) { s.finals = append(s.finals, final{name, ok}) }
