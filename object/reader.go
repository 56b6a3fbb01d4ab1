package object

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// Reader looks at the objects in a store without a host, for example in a directory that was
// opened to be read. No user code runs, and nothing is stored. Its methods may be called from
// any goroutine, as long as the store is open.
//
// A Host has the same methods, so code that lists and inspects takes either of them by an
// interface. The answer of a Host is durable. The answer of a Reader is as durable as the
// store: in one that nobody writes to it is.
type Reader struct{ store *storage.Store }

// NewReader returns a Reader of a store. The store stays the caller's, who closes it.
func NewReader(store *storage.Store) Reader { return Reader{store} }

// The lengths of the pages that a Reader or a Host returns. A page that is asked for without
// a limit has up to DefaultPage rows. A limit above MaxPage is an error, because a page is in
// memory as a whole.
const (
	DefaultPage = 100
	MaxPage     = 1000
)

// pageLimit returns how many rows a page has at most.
func pageLimit(limit int) (int, error) {
	if limit > MaxPage {
		return 0, fmt.Errorf("%s must be at most %d: %d", "Limit", MaxPage, limit)
	}
	return cmp.Or(limit, DefaultPage), notNegative("Limit", limit)
}

// read answers a look at an object, a class or the whole store, by which its errors are named.
func read[T any](ctx context.Context, r Reader, id storage.ID, look func() (T, error)) (v T, err error) {
	if r.store == nil {
		return v, errors.New("object: the Reader has no store: make it by NewReader")
	}
	if err = seam.Cause(ctx); err == nil {
		v, err = look()
	}
	return v, lookError(id, err)
}

// readDurably is read for a host: it returns when all that the answer shows is durable, because
// a turn may have committed it a moment ago (O7). The look counts as under way, so that
// Shutdown does not close the store under it.
func readDurably[T any](ctx context.Context, h *Host, id storage.ID, look func(Reader) (T, error)) (v T, err error) {
	if err := cmp.Or(seam.Cause(ctx), h.store.Err()); err != nil {
		return v, h.storageError(id, err)
	}
	if err := h.lifecycle.enter(false); err != nil {
		return v, named(id, err)
	}
	defer h.lifecycle.leave()
	answer, err := look(NewReader(h.store))
	if err == nil {
		err = h.store.WaitSeen(ctx)
	}
	if err != nil {
		return v, h.lookFailed(id, err)
	}
	return answer, nil
}

// Read calls f with a Reader of the host's store, and returns when all that f has read is durable.
// So a list that takes many reads waits for the disk once. f runs on the goroutine of the caller and
// reads by r alone. Read returns the error of f, and ErrShutdown in the place of one
// that tells of a closed store.
func (h *Host) Read(ctx context.Context, f func(r Reader) error) error {
	_, err := readDurably(ctx, h, storage.ID{}, func(r Reader) (struct{}, error) { return struct{}{}, f(r) })
	return err
}

// lookError names an error of a look. One that refuses a name has it in its text already, in
// a form that can be printed.
func lookError(id storage.ID, err error) error {
	if err == nil || errors.Is(err, ErrBadName) {
		return err
	}
	return named(id, err)
}

// lookFailed is lookError for a host: an error of the store ends the host (O13).
func (h *Host) lookFailed(id storage.ID, err error) error {
	if errors.Is(err, ErrBadName) {
		return err
	}
	return h.storageError(id, err)
}

// validID returns why no object can have a name.
func validID(id storage.ID) error {
	if err := id.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrBadName, err)
	}
	return nil
}

// StoredClasses returns the classes of which the store holds an object, in the order of their
// names, also those that are not registered with a host.
func (r Reader) StoredClasses(ctx context.Context) ([]string, error) {
	return read(ctx, r, storage.ID{}, r.store.Classes)
}

// StoredClasses is Reader.StoredClasses for an open host.
func (h *Host) StoredClasses(ctx context.Context) ([]string, error) {
	return readDurably(ctx, h, storage.ID{}, func(r Reader) ([]string, error) { return r.store.Classes() })
}

// ObjectsOptions say which objects of a class Objects lists. All of them apply together, and
// the zero value lists the first DefaultPage objects.
type ObjectsOptions struct {
	// Prefix lists only the objects with names that begin with it.
	Prefix string
	// Label lists only the objects with this label, and reads no others. Job types set the
	// label of a job to its status, except while it is running or executing. So the jobs
	// of a class that have failed are those with the label "failed".
	Label string
	// After begins behind the object with this name, which need not exist: the next page
	// begins after the last name of the page before.
	After string
	// Limit is how many objects a page has at most. Zero means DefaultPage; it may be up to
	// MaxPage. A page with fewer objects is the last one.
	Limit int
	// Sizes fills in ObjectInfo.SizeBytes, which costs a look into the files for each object.
	Sizes bool
}

// in returns the options for the store, or the first mistake in them.
func (o ObjectsOptions) in(class string) (list storage.ListOptions, err error) {
	if err := storage.ValidateClass(class); err != nil {
		return list, fmt.Errorf("%w: %w", ErrBadName, err)
	}
	for _, field := range [][2]string{{"After", o.After}, {"Prefix", o.Prefix}} {
		if err := validID(storage.ID{Class: class, Name: cmp.Or(field[1], "-")}); err != nil {
			return list, fmt.Errorf("class %s: Objects: %s: %w", class, field[0], err)
		}
	}
	list = storage.ListOptions{Prefix: o.Prefix, After: o.After}
	if list.Limit, err = pageLimit(o.Limit); err == nil {
		list.Label, err = storage.NewLabel(o.Label)
	}
	if err != nil {
		return list, fmt.Errorf("object: Objects: %w", err)
	}
	return list, nil
}

// ObjectInfo is an object as Objects lists it. Its JSON is for tools, and fields may be
// added to it.
type ObjectInfo struct {
	ID    storage.ID `json:"id"`
	Alarm time.Time  `json:"alarm,omitzero"`  // when it is due; zero: there is none
	Label string     `json:"label,omitempty"` // see ObjectsOptions.Label
	// SizeBytes is an estimate of its rows on disk, and 0 without ObjectsOptions.Sizes. It
	// is 0 too until the rows are flushed from the store's memory, and rows that were
	// deleted count until they are compacted.
	SizeBytes uint64 `json:"sizeBytes,omitempty"`
}

// Objects lists a page of the objects of a class in the order of the bytes of their names. The
// class need not be registered. An object that begins or ends meanwhile may be in the list
// or not; each other one is in it once.
//
// A page reads about one row for each shard and a few for each object that it lists, wherever
// it begins and however many objects there are. It returns ErrBadName for a class, a Prefix or
// an After that no object can have, and an error for a Limit below 0 or above MaxPage.
func (r Reader) Objects(ctx context.Context, class string, o ObjectsOptions) ([]ObjectInfo, error) {
	return read(ctx, r, storage.ID{Class: class}, func() ([]ObjectInfo, error) { return r.objects(class, o) })
}

// Objects is Reader.Objects for an open host. No user code runs, and no object is activated.
// The list is durable when it is returned. All failed jobs of a class, page by page:
//
//	for o := (object.ObjectsOptions{Label: "failed"}); ; {
//		page, err := host.Objects(ctx, "report", o)
//		if err != nil || len(page) == 0 {
//			return err
//		}
//		o.After = page[len(page)-1].ID.Name
//	}
func (h *Host) Objects(ctx context.Context, class string, o ObjectsOptions) ([]ObjectInfo, error) {
	return readDurably(ctx, h, storage.ID{Class: class}, func(r Reader) ([]ObjectInfo, error) { return r.objects(class, o) })
}

// objects reads a page.
func (r Reader) objects(class string, o ObjectsOptions) ([]ObjectInfo, error) {
	list, err := o.in(class)
	if err != nil {
		return nil, err
	}
	found, err := r.store.List(class, list)
	if err != nil {
		return nil, err
	}
	infos := make([]ObjectInfo, len(found))
	for i, stored := range found {
		if infos[i], err = r.info(stored, o.Sizes); err != nil {
			return nil, err
		}
	}
	return infos, nil
}

// info reads the alarm of an object and, if asked, estimates its size.
func (r Reader) info(o storage.Object, size bool) (ObjectInfo, error) {
	info := ObjectInfo{ID: o.ID, Label: o.Label.String()}
	row, err := alarmRow(r.store, o)
	if row != nil {
		info.Alarm = row.Due
	}
	if err == nil && size {
		info.SizeBytes, err = r.store.Size(o)
	}
	return info, err
}

// alarmRow reads the alarm of an object from the store; nil if it has none. It needs no
// turn, so a turn may change the alarm meanwhile.
func alarmRow(s *storage.Store, o storage.Object) (*alarm.Row, error) {
	value, ok, err := s.Alarm(o)
	if err != nil || !ok {
		return nil, err
	}
	row, err := alarm.DecodeRow(value)
	return &row, err
}
