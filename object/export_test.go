package object

import (
	"github.com/holdfast-dev/holdfast/object/internal/inbox"
	"github.com/holdfast-dev/holdfast/storage"
)

// SetRecallBytes changes the memory that the filters of a host may take.
func SetRecallBytes(h *Host, n int64) { h.filterBudget.total = n }

// RecallBytes is the memory that they take.
func RecallBytes(h *Host) int64 { return h.filterBudget.used.Load() }

// Watched is how many objects and classes somebody listens to.
func Watched(h *Host) int { return tapsOf(h).Topics() }

// Waits is the number of turns in the graph of waiting turns.
func Waits(h *Host) int {
	h.waits.mu.Lock()
	defer h.waits.mu.Unlock()
	return len(h.waits.callers) + len(h.waits.holders)
}

// SameBucket reports whether the messages by time of two receivers are counted together.
func SameBucket(a, b storage.ID) bool {
	var c inbox.LaterCounts
	c.Add(a, 1, 0)
	return c.Most(b) == 1
}

// LaterCount is the count of messages by time that bounds those of a receiver.
func LaterCount(h *Host, to storage.ID) int { return h.mail.timed.Most(to) }

// StoredCount is the count of all messages in the store.
func StoredCount(h *Host) int { return int(h.mail.stored.Load()) }
