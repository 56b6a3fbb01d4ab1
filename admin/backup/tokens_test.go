package backup_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/admin/backup"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// printers are pools whose stores lie in memory.
type printers struct {
	*testing.T
	o     storage.Options
	pools []object.Definition
}

func newPrinters(t *testing.T, pools ...object.Definition) printers {
	return printers{t, storage.Options{Shards: 4, MinFreeBytes: -1, Pebble: pebblestore.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20}}, pools}
}

func (p printers) open(dir string) *object.Host {
	p.Helper()
	h, err := object.Open(object.Options{Dir: dir, Storage: p.o, Logger: slog.New(slog.DiscardHandler)}, p.pools...)
	if err != nil {
		p.Fatal(err)
	}
	return h
}

func (p printers) end(h *object.Host) {
	p.Helper()
	if err := h.Shutdown(context.Background()); err != nil {
		p.Fatal(err)
	}
}

// restored puts a snapshot of the store of a host into a directory once meanwhile has returned.
func (p printers) restored(h *object.Host, dir string, meanwhile func()) {
	p.Helper()
	repo, err := backup.Open("repo", p.o)
	if err != nil {
		p.Fatal(err)
	}
	made, err := repo.Create(p.Context(), h.Store())
	if err != nil {
		p.Fatal(err)
	}
	meanwhile()
	if _, err := repo.Restore(p.Context(), made.Name, dir); err != nil {
		p.Fatal(err)
	}
}

// wake wakes a store that no host has open.
func (p printers) wake(dir string) {
	p.Helper()
	o := p.o
	o.Dir = dir
	if err := storage.Wake(o); err != nil {
		p.Fatal(err)
	}
}

// Workers outside hold claims of the time that a restore takes back: of tasks that the copy has, and of later ones. The
// copy gives none of their tokens again, asleep or awake, and refuses each of them, also while
// another worker holds the task. The token of a claim from before the snapshot is good in the copy.
//
// Proves J8. Proves S17.
func TestRestoredStoreGivesNoTokenAgain(t *testing.T) {
	ctx := t.Context()
	prints := workerpool.New(workerpool.Config[string, int]{Name: "print", Lease: time.Hour})
	p := newPrinters(t, prints)
	claim := func(h *object.Host, adds, n int) (leases []workerpool.Lease) {
		t.Helper()
		for range adds {
			if _, err := prints.Enqueue(ctx, h, "text"); err != nil {
				t.Fatal(err)
			}
		}
		claims, err := prints.Claim(ctx, h, n, 0)
		if err != nil || len(claims) != n {
			t.Fatalf("%d claims, want %d: %v", len(claims), n, err)
		}
		for _, c := range claims {
			leases = append(leases, c.Lease)
		}
		return leases
	}

	h := p.open("source")
	old := claim(h, 4, 1)[0]
	var lost []workerpool.Lease
	given := make(map[engine.Token]bool)
	p.restored(h, "copy", func() {
		lost = claim(h, 0, 3)
		for range 3 { // later openings of the source
			p.end(h)
			h = p.open("source")
			lost = append(lost, claim(h, 2, 2)...)
		}
		p.end(h)
	})
	greatest := lost[0].Token
	for _, l := range lost {
		given[l.Token], greatest = true, max(greatest, l.Token)
	}

	refuses := func(h *object.Host) {
		t.Helper()
		for _, l := range lost {
			_, beat := prints.Heartbeat(ctx, h, l)
			for what, err := range map[string]error{"heartbeat": beat, "ack": prints.Ack(ctx, h, l, 1), "nack": prints.Nack(ctx, h, l, errors.New("jam"))} {
				if !errors.Is(err, jobs.ErrStaleExecution) {
					t.Errorf("J8: %s of task %s with token %s of the lost time: %v", what, l.ID, l.Token, err)
				}
			}
		}
	}
	h = p.open("copy")
	if _, err := prints.Claim(ctx, h, 1, 0); !errors.Is(err, object.ErrDormant) {
		t.Errorf("O26: a claim of the dormant copy: %v", err)
	}
	refuses(h)
	p.end(h)
	p.wake("copy")
	same := 0
	for opening := range 3 {
		h = p.open("copy")
		refuses(h)
		for _, l := range claim(h, 3, 3+3*max(0, 1-opening)) {
			if given[l.Token] || l.Token <= greatest {
				t.Errorf("S17: opening %d gives token %s to task %s, and the source has given up to %s", opening, l.Token, l.ID, greatest)
			}
			given[l.Token] = true
			for _, of := range lost {
				if of.ID == l.ID {
					same++
				}
			}
		}
		refuses(h)
		if opening == 1 {
			if err := prints.Ack(ctx, h, old, 1); err != nil {
				t.Errorf("the claim from before the snapshot: %v", err)
			}
		}
		p.end(h)
	}
	if same != 3 {
		t.Errorf("%d claims of tasks with the ids of lost ones, want 3: those that were there at the snapshot", same)
	}
}

// A task of a restored store never has the id, and so the key for other systems, of a task that its source was given after the snapshot, nor has
// one of a copy of the copy: not in a partition that gets tasks all the time, nor in one that gets them after the snapshots alone, whether it had
// one before or none. Tasks from before keep theirs.
//
// Proves S17.
func TestRestoredStoreGivesNoTaskIDAgain(t *testing.T) {
	ctx := t.Context()
	pool := func(name string) *workerpool.Pool[string, int] {
		return workerpool.New(workerpool.Config[string, int]{Name: name, Lease: time.Hour})
	}
	prints, scans, faxes := pool("print"), pool("scan"), pool("fax")
	p := newPrinters(t, prints, scans, faxes)
	given := make(map[string]bool) // ids
	add := func(h *object.Host, pool *workerpool.Pool[string, int]) uint64 {
		t.Helper()
		ref, err := pool.Enqueue(ctx, h, "text")
		if err != nil {
			t.Fatal(err)
		}
		id := pool.Name() + "/" + ref.ID.String()
		if given[id] {
			t.Errorf("S17: task %s is given again", id)
		}
		given[id] = true
		return ref.ID.Number
	}
	h := p.open("0")
	if first, second := add(h, prints), add(h, prints); first != 1 || second != 2 {
		t.Errorf("the first tasks are %d and %d", first, second)
	}
	add(h, scans)
	for n := range uint64(3) {
		next := strconv.FormatUint(n+1, 10)
		p.restored(h, next, func() {
			for range 2 { // two openings of the source
				for _, pool := range []*workerpool.Pool[string, int]{prints, scans, faxes} {
					add(h, pool)
					add(h, pool)
				}
				p.end(h)
				h = p.open(strconv.FormatUint(n, 10))
			}
			p.end(h)
		})
		p.wake(next)
		h = p.open(next)
		first := add(h, prints)
		p.end(h)
		h = p.open(next)
		if second := add(h, prints); first != 2*(n+1)<<32+1 || second != first+1 {
			t.Errorf("the first tasks of copy %s are %d and %d", next, first, second)
		}
	}
	for _, id := range []workerpool.TaskID{{Number: 1}, {Number: 2}} {
		if _, err := prints.Status(ctx, h, id); err != nil {
			t.Errorf("task %s from before the first snapshot: %v", id, err)
		}
	}
	p.end(h)
}
