package workflow

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
)

// blockedAfter is how long a scope may be between two operations before it is told as blocked.
const blockedAfter = time.Minute

// A scope that waits for a Go channel, a mutex or a WaitGroup is not parked, so its run stays in
// memory, and nothing tells why it does not go on. Operations count themselves, under the mutex
// that they take anyway. The look at the counts comes with the extension of the lease, which is a
// turn with a commit anyway, so no operation reads a clock or has a timer for it.

// Watch tells once of each scope that has begun no operation for a minute, for the engine.
func (in *instance) Watch(ctx context.Context, _ engine.Execution) error {
	if in.stretch == nil {
		return nil
	}
	for _, path := range in.stretch.newlyBlocked(in.job.Now()) {
		if err := in.st.Emit(ctx, EventBlocked, jobs.Event{Run: in.row.Generation, Reason: history.ScopeName(path)}); err != nil {
			return err
		}
	}
	return nil
}

// newlyBlocked returns the paths of the scopes that are blocked and were not told.
func (s *stretch) newlyBlocked(now time.Time) (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == nil || s.hold { // it is held back after a crash, or ends
		return nil
	}
	look := func(sc *scope) {
		switch {
		case sc.busy:
			sc.since, sc.told = time.Time{}, false
		case sc.since.IsZero() || sc.seen != sc.ops:
			sc.since, sc.seen, sc.told = now, sc.ops, false
		case !sc.told && now.Sub(sc.since) >= blockedAfter:
			sc.told = true
			paths = append(paths, sc.path)
		}
	}
	look(s.root)
	for _, sc := range s.scopes {
		look(sc)
	}
	return paths
}

// blocked reports whether a scope that was told as blocked still is. The caller holds s.mu.
func (s *stretch) blocked() bool {
	is := func(sc *scope) bool { return sc.told && !sc.busy && sc.seen == sc.ops }
	if s.root != nil && is(s.root) {
		return true
	}
	for _, sc := range s.scopes {
		if is(sc) {
			return true
		}
	}
	return false
}

// enlist adds the scope of a branch that begins to those that Watch looks at.
func (s *stretch) enlist(sc *scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc.index = len(s.scopes)
	s.scopes = append(s.scopes, sc)
}

// delist takes the scope of a branch that has ended out of them. The last one moves to its
// place.
func (s *stretch) delist(sc *scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.scopes) - 1
	s.scopes[sc.index] = s.scopes[last]
	s.scopes[sc.index].index = sc.index
	s.scopes[last] = nil
	s.scopes = s.scopes[:last]
	sc.of.done++
}

// over notes that the code of the function has ended, so that Watch finds it blocked no more.
func (s *stretch) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.root.busy = true
}
