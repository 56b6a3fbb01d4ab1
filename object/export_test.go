package object

// SetRecallBytes changes the memory that the filters of a host may take.
func SetRecallBytes(h *Host, n int64) { h.recalls.total = n }

// RecallBytes is the memory that they take.
func RecallBytes(h *Host) int64 { return h.recalls.used.Load() }

// Watched is how many objects somebody watches.
func Watched(h *Host) int {
	h.watch.mu.Lock()
	defer h.watch.mu.Unlock()
	return len(h.watch.m)
}

// Waits is how many turns the graph of those that wait knows.
func Waits(h *Host) int {
	h.waits.mu.Lock()
	defer h.waits.mu.Unlock()
	return len(h.waits.callers) + len(h.waits.holders)
}
