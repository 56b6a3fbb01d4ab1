package pglog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// A box is an object with values that no compression makes smaller. Its name is a number, and with the number of a value it is the
// seed of its bytes.
const (
	valueBytes = 64 << 10
	boxValues  = 16
	boxBytes   = boxValues * valueBytes
)

// writeValue writes the bytes of a value.
func writeValue(w io.Writer, box, value uint64) error {
	var seed [32]byte
	copy(seed[:], fmt.Sprint(box, " ", value))
	_, err := io.CopyN(w, rand.NewChaCha8(seed), valueBytes)
	return err
}

type box struct {
	st     *object.State
	number uint64
}

var (
	boxes = object.Define("box", func(_ context.Context, st *object.State) (*box, error) {
		number, err := strconv.ParseUint(st.Name(), 10, 64)
		return &box{st, number}, err
	})
	fillBox = object.Handle(boxes, "fill", func(b *box, ctx context.Context, value uint64) (bool, error) {
		var bytes strings.Builder
		if err := writeValue(&bytes, b.number, value); err != nil {
			return false, err
		}
		return true, b.st.Storage().PutBytes(ctx, fmt.Sprintf("%02d", value), []byte(bytes.String()))
	})
	sumBox = object.Handle(boxes, "sum", func(b *box, ctx context.Context, values uint64) (string, error) {
		sum := sha256.New()
		for n := range values {
			value, found, err := b.st.Storage().Get(ctx, fmt.Sprintf("%02d", n))
			if err != nil || !found {
				return "", fmt.Errorf("value %d of box %d: found is %v: %w", n, b.number, found, err)
			}
			sum.Write(value)
		}
		return hex.EncodeToString(sum.Sum(nil)), nil
	})
)

// warehouse is a cluster with a store of boxes.
type warehouse struct {
	t     *testing.T
	pair  *pgtest.Pair
	o     Options
	every uint64        // bytes of records between two snapshots
	full  uint64        // boxes that are full
	heap  atomic.Uint64 // most bytes that were in use on the heap
	said  loglines.Recorder
}

// join starts a node with an empty directory, over a log of its own. The seams are those of the node alone.
func (w *warehouse) join(id string, seams seam.Seams) (*cluster.Node, *Log) {
	w.t.Helper()
	o := w.o
	o.Node = id
	l := open(w.t, o)
	n, err := cluster.Join(w.t.Context(), cluster.Options{
		Log: l, ID: id, Addr: id, Dir: w.t.TempDir(), Dial: func(context.Context, string) error { return nil },
		Snapshots: cluster.Snapshots{EveryBytes: w.every, BytesPerSecond: 1 << 30}, Logger: w.said.Logger(),
		Seams: seams,
	}, boxes)
	must(w.t, err)
	w.t.Cleanup(func() { must(w.t, n.Drain(context.Background())) })
	return n, l
}

// each calls f for boxes from one on to another, 16 at a time.
func (w *warehouse) each(from, to uint64, f func(box uint64) error) {
	w.t.Helper()
	var running sync.WaitGroup
	var next atomic.Uint64
	failed := make([]error, 16)
	for i := range failed {
		running.Go(func() {
			for n := from + next.Add(1) - 1; n < to && failed[i] == nil; n = from + next.Add(1) - 1 {
				failed[i] = f(n)
				w.measure()
			}
		})
	}
	running.Wait()
	must(w.t, errors.Join(failed...))
}

// measure looks at that which the last collection found in use on the heap.
func (w *warehouse) measure() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	for most, now := w.heap.Load(), live[0].Value.Uint64(); now > most && !w.heap.CompareAndSwap(most, now); most = w.heap.Load() {
	}
}

// fill fills boxes more, through a node.
func (w *warehouse) fill(n *cluster.Node, boxes uint64) {
	w.t.Helper()
	w.each(w.full, w.full+boxes, func(box uint64) error {
		for value := range uint64(boxValues) {
			err := object.ErrUnknown // on a slow disk, and it may be stored again
			for errors.Is(err, object.ErrUnknown) {
				_, err = fillBox.Call(w.t.Context(), n, fmt.Sprint(box), value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	w.full += boxes
}

// compare compares all boxes, as a node has them, with their seeds.
func (w *warehouse) compare(n *cluster.Node) {
	w.t.Helper()
	w.each(0, w.full, func(box uint64) error {
		want := sha256.New()
		for value := range uint64(boxValues) {
			if err := writeValue(want, box, value); err != nil {
				return err
			}
		}
		got, err := sumBox.Call(w.t.Context(), n, fmt.Sprint(box), boxValues)
		if err == nil && got != hex.EncodeToString(want.Sum(nil)) {
			err = fmt.Errorf("box %d has other contents than were stored", box)
		}
		return err
	})
}

// head is the state of the log, as a look shows it.
func (w *warehouse) head(l *Log) shardlog.State {
	w.t.Helper()
	look, err := l.Look(w.t.Context(), 0)
	must(w.t, err)
	return look.State
}

// snapshotAfter waits until the node has made a snapshot that ends behind a record.
func (w *warehouse) snapshotAfter(n *cluster.Node, l *Log, last shardlog.Position) {
	w.t.Helper()
	for changed := n.Changed(); ; changed = n.Changed() {
		all, err := l.Snapshots(w.t.Context(), 0)
		must(w.t, err)
		if len(all) > 0 && all[0].Last > last {
			return
		}
		<-changed // twice a second
	}
}

// A node fills a store, and its snapshots let it truncate the log. A node with an empty directory then catches up from a snapshot
// and the records behind it, takes over, and has all contents. In a long run, with a store of more than 256 MiB, the heap of both stays below that.
func TestStoreOfManyBytes(t *testing.T) {
	const (
		phases   = 3
		mostHeap = 256 << 20 // bytes in use: the 64 MiB of records that the owner keeps, rounds under way, pages and parts of 4 MiB
	)
	pair := shared(t)
	total := fromEnv(t, "HOLDFAST_PG_STORE_BYTES", 24<<20, 24<<20)
	w := &warehouse{t: t, pair: pair, o: options(t, pair), every: uint64(total) / (2 * phases)}
	a, la := w.join("a", seam.Seams{})
	_, err := a.Serving(t.Context())
	must(t, err)
	all := uint64(total) / boxBytes
	for range phases {
		before := w.head(la).Last
		w.fill(a, all/(phases+1))
		w.snapshotAfter(a, la, before)
		t.Logf("%d MiB are stored, and a snapshot of most", w.full*boxBytes>>20)
	}
	for changed := a.Changed(); w.head(la).First == 1; changed = a.Changed() {
		<-changed
	}

	clock := handTimers{seam.Seams{}.WithDefaults().Clock, newHand()} // so that b does not take over before a has left
	b, lb := w.join("b", seam.Seams{Clock: clock})
	t.Log("b has caught up")
	w.fill(a, all-w.full)
	t.Logf("%d MiB are stored", w.full*boxBytes>>20)
	must(t, a.Drain(t.Context()))
	for serves := false; !serves; _, serves = b.Active() {
		clock.hand.pass(shardlog.LookEvery)
		w.head(lb)
	}
	w.compare(b)
	t.Logf("b serves; the heap had at most %d MiB", w.heap.Load()>>20)

	head := w.head(lb)
	if restored := w.restored(); restored == 0 || restored >= head.Last || head.First == 1 {
		t.Errorf("the view of b is of a snapshot that ends at record %d, the log is %+v: want a snapshot, and records behind it", restored, head)
	}
	if text := w.said.Text(slog.LevelError); text != "" {
		t.Errorf("the nodes say %s", text)
	}
	// A store that is smaller than the bound could be in the heap as a whole, and that of the tests before is there too.
	if most := w.heap.Load(); total > mostHeap && most > mostHeap {
		t.Errorf("the heap had %d bytes, want at most %d", most, mostHeap)
	}
	t.Logf("%+v; PostgreSQL has %s of records and %s of snapshots", head, w.size("{log}"), w.size("{part}"))
}

// restored is the record at which the snapshot ends that a node has last restored; 0: none has.
func (w *warehouse) restored() (last shardlog.Position) {
	w.t.Helper()
	for _, l := range w.said.From(slog.LevelInfo) {
		if strings.HasPrefix(l.Text, "the view is that of a snapshot now") {
			n, err := strconv.ParseUint(l.Attrs["record"], 10, 64)
			must(w.t, err)
			last = shardlog.Position(n)
		}
	}
	return last
}

func (w *warehouse) size(table string) string {
	w.t.Helper()
	return ask(w.t, w.pair.Primary, w.o.names()("select pg_size_pretty(pg_total_relation_size('"+table+"'))"))
}
