package server

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// maxRecovered bounds the names in the entry of an opening.
const maxRecovered = 100

// auditRecoveries counts the recoveries of one class, cause and next step, and adds up their attempts.
type auditRecoveries struct {
	Class    string `json:"class"`
	Cause    string `json:"cause"`
	Action   string `json:"action"`
	Count    int    `json:"count"`
	Attempts int    `json:"attempts"`
}

// The entry of an opening is written when no recovery has come for a second, or a minute after the opening.
const (
	recoveryPause = time.Second
	recoveryLooks = 60
)

// auditRecovery writes an entry of the executions that an opening of the host has recovered, if there is any.
func auditRecovery(ctx context.Context, h *object.Host, log *slog.Logger) {
	var lines []object.Recovery
	total := -1
	for range recoveryLooks {
		if h.Seams().Sleep(ctx, recoveryPause) != nil {
			return // the host ends
		}
		before := total
		if lines, total = h.Recoveries(); total == before {
			break
		}
	}
	if total == 0 {
		return
	}
	if _, err := auditWrite.Call(ctx, h, today(h), auditEvent{auditNoted, recoveryEntry(lines, total)}); err != nil {
		log.Error("server: audit: the entry of the recoveries cannot be written", "recoveries", total, "error", err)
	}
}

// recoveryEntry is the entry of the recoveries of an opening.
func recoveryEntry(lines []object.Recovery, total int) auditEntry {
	e := auditEntry{Verb: "recovery", Outcome: done, Count: total}
	groups := map[auditRecoveries]*auditRecoveries{}
	for _, l := range lines {
		key := auditRecoveries{Class: l.ID.Class, Cause: l.Cause, Action: l.Action}
		if groups[key] == nil {
			g := key
			groups[key] = &g
		}
		groups[key].Count++
		groups[key].Attempts += l.Attempt
		if len(e.Recovered) < maxRecovered {
			e.Recovered = append(e.Recovered, l.ID.String())
		}
	}
	for _, g := range groups {
		e.Recoveries = append(e.Recoveries, *g)
	}
	slices.SortFunc(e.Recoveries, func(a, b auditRecoveries) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Action, b.Action))
	})
	return e
}
