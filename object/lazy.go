package object

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// unconfirmedDelay bounds how long an unconfirmed commit stays without a sync
// when nobody else needs one.
const unconfirmedDelay = time.Second

// lazySync makes unconfirmed commits durable a little later.
type lazySync struct{ planned atomic.Bool }

func (l *lazySync) plan(h *Host) {
	if !l.planned.CompareAndSwap(false, true) {
		return
	}
	h.seams.Clock.AfterFunc(unconfirmedDelay, func() {
		l.planned.Store(false)
		if h.life.enter(false) != nil {
			return // Shutdown makes everything durable
		}
		defer h.life.leave()
		_ = h.storageError(storage.ID{}, h.store.WaitDurable(h.store.Applied()))
	})
}
