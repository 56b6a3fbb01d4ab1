package bubbles

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is where one host after the other runs.
type machine struct {
	t    testing.TB
	defs []object.Definition
	mem  *memstore.Store
	host *object.Host
}

func newMachine(t testing.TB, defs ...object.Definition) *machine {
	m := &machine{t: t, defs: defs, mem: memstore.New()}
	m.open()
	return m
}

func (m *machine) open() {
	m.t.Helper()
	h, err := object.Open(object.Options{
		Storage: storage.Options{Engine: m.mem, Shards: 4},
		Logger:  slog.New(slog.DiscardHandler),
	}, m.defs...)
	if err != nil {
		m.t.Fatal(err)
	}
	m.host = h
}

// close shuts the host down in order.
func (m *machine) close() {
	m.t.Helper()
	if err := m.host.Shutdown(context.Background()); err != nil {
		m.t.Error(err)
	}
	m.mem = m.mem.Crash(0)
}

func (m *machine) restart() {
	m.t.Helper()
	m.close()
	m.open()
}

// crash kills the host and opens the next on what was synced.
func (m *machine) crash() {
	m.t.Helper()
	left := m.mem.Crash(0)
	_ = m.host.Shutdown(ended()) // nobody hears what it says
	m.mem = left
	m.open()
}

// ended is a context that is over.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// until lets time pass up to a moment, and all that comes due by then happen.
func until(at time.Time) {
	time.Sleep(time.Until(at))
	synctest.Wait()
}
