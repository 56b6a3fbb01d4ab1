package jobs

// Stale counts a try to end or extend an execution that is not open, or not the
// caller's, and returns the ErrStaleExecution that the caller gets. It changes
// nothing. A job type calls it where it refuses a token itself.
func (e *Engine) Stale(t Token) error { return e.stale(t) }
