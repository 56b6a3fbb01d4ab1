package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/admin/transfer"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// cart is an object with all kinds of rows.
type cart struct {
	st    *object.State
	fired chan<- object.AlarmInfo
}

func (c *cart) Alarm(ctx context.Context, info object.AlarmInfo) error {
	c.fired <- info
	return c.st.Storage().PutBytes(ctx, "fired", nil)
}

// shop is the definitions of a program, and the alarms that have fired in it.
type shop struct {
	carts *object.Class[cart]
	put   *object.Method[map[string][]byte, int]
	fill  *object.Method[time.Time, int]
	send  *object.Method[string, int]
	fired chan object.AlarmInfo
}

func newShop() *shop {
	s := &shop{fired: make(chan object.AlarmInfo, 10)}
	s.carts = object.Define("cart", func(_ context.Context, st *object.State) (*cart, error) {
		return &cart{st, s.fired}, nil
	})
	s.put = object.Handle(s.carts, "put", func(c *cart, ctx context.Context, rows map[string][]byte) (int, error) {
		for key, value := range rows {
			if err := c.st.Storage().PutBytes(ctx, key, value); err != nil {
				return 0, err
			}
		}
		return len(rows), nil
	})
	// send sends two messages that are due in an hour.
	s.send = object.Handle(s.carts, "send", func(c *cart, ctx context.Context, to string) (int, error) {
		rows := map[string][]byte{"b": nil}
		return 2, errors.Join(
			s.put.Send(ctx, c.st, to, rows, object.After(time.Hour)), s.put.Send(ctx, c.st, to, rows, object.After(time.Hour)),
		)
	})
	// fill gives the object a row of each kind.
	s.fill = object.Handle(s.carts, "fill", func(c *cart, ctx context.Context, alarm time.Time) (int, error) {
		return 1, errors.Join(
			c.st.Mark(ctx, "seen", []byte("yes"), time.Hour), c.st.Mark(ctx, "b\xff", nil, 90*time.Hour),
			c.st.SetAlarm(ctx, alarm), c.st.Driver().SetLabel(ctx, "busy"),
			c.st.Driver().OpenExecution(ctx, []byte("data")),
			c.st.Emit(ctx, "filled", "<a>", object.KeepFor(time.Hour)), c.st.Emit(ctx, "filled", 2),
		)
	})
	return s
}

// open opens a host on a store in memory. Its Shutdown comes with the end of the test.
func (s *shop) open(t testing.TB, o object.Options) *object.Host {
	o.Storage.Engine = memstore.New()
	o.Logger = slog.New(slog.DiscardHandler)
	h, err := object.Open(o, s.carts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Store().Check(); err != nil {
			t.Error(err)
		}
		if err := h.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

var bob = storage.ID{Class: "cart", Name: "bob"}

// exported returns the file of an object.
func exported(t testing.TB, from transfer.Source, id storage.ID) string {
	t.Helper()
	var b bytes.Buffer
	if err := transfer.Export(context.Background(), from, id, &b, transfer.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func imported(h *object.Host, file string, o transfer.ImportOptions) error {
	_, err := transfer.Import(context.Background(), h, strings.NewReader(file), o)
	return err
}

// filled is a host with a cart that has a row of each kind, and the file of that.
func filled(t testing.TB, alarm time.Time) (*shop, *object.Host, string) {
	t.Helper()
	s := newShop()
	h := s.open(t, object.Options{})
	ctx := context.Background()
	_, err := s.put.Call(ctx, h, "bob", map[string][]byte{"": {}, "total": []byte("499"), "é<&>": []byte("\n"), "raw\xff": {0, 1, 0xfe}})
	_, filled := s.fill.Call(ctx, h, "bob", alarm, object.Idempotent("key", time.Hour))
	if err := errors.Join(err, filled); err != nil {
		t.Fatal(err)
	}
	return s, h, exported(t, h, bob)
}

// Proves O27: an export, an import elsewhere and an export of that are the same lines, from a
// host and from a store that is read. The import has a fresh number and is listed by its label.
func TestRoundTrip(t *testing.T) {
	_, _, file := filled(t, far)
	elsewhere := newShop()
	h := elsewhere.open(t, object.Options{})
	if err := imported(h, file, transfer.ImportOptions{Alarms: true}); err != nil {
		t.Fatal(err)
	}
	codec := regexp.MustCompile(`,"codec":"json"`)
	for name, from := range map[string]transfer.Source{"host": h, "reader": object.NewReader(h.Store())} {
		again := exported(t, from, bob)
		if withoutSum(codec.ReplaceAllString(again, "")) != withoutSum(codec.ReplaceAllString(file, "")) {
			t.Errorf("%s:\n%s\nwant\n%s", name, again, file)
		}
	}
	infos, err := h.Objects(context.Background(), "cart", object.ObjectsOptions{Label: "busy"})
	if err != nil || len(infos) != 1 || infos[0].ID != bob || infos[0].Alarm.IsZero() {
		t.Errorf("%+v, %v", infos, err)
	}
	in, err := h.Inspect(context.Background(), bob)
	if err != nil || !in.Execution || in.ExecutionEpoch != 0 {
		t.Errorf("%+v, %v", in, err)
	}
}

// withoutSum is a file without its last line.
func withoutSum(file string) string { return file[:strings.LastIndex(file[:len(file)-1], "\n")+1] }

// Proves O27: keys and values of any bytes come through, in one commit or in portions.
func TestRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		bytes := rapid.SliceOfN(rapid.Byte(), 0, 40)
		rows := rapid.MapOfN(rapid.Map(bytes, func(b []byte) string { return string(b) }), bytes, 1, 20).Draw(r, "rows")
		s := newShop()
		from, _ := open(r, s, object.Options{})
		defer from.Shutdown(context.Background())
		into, _ := open(r, s, object.Options{MaxBatchBytes: rapid.SampledFrom([]int{800, 4 << 10, 0}).Draw(r, "batch")})
		defer into.Shutdown(context.Background())
		if _, err := s.put.Call(context.Background(), from, "bob", rows); err != nil {
			r.Fatal(err)
		}
		if err := imported(into, export(r, from), transfer.ImportOptions{}); err != nil {
			r.Fatal(err)
		}
		if export(r, into) != export(r, from) {
			r.Fatalf("%s\nwant\n%s", export(r, into), export(r, from))
		}
		if err := into.Store().Check(); err != nil {
			r.Fatal(err)
		}
	})
}

// Proves O27: an object of a user may have a row under the key that the counters of a partition have.
func TestKeyOfAUserAsThatOfAPartition(t *testing.T) {
	from := newShop()
	h := from.open(t, object.Options{})
	rows := map[string][]byte{"c": {1}}
	if _, err := from.put.Call(context.Background(), h, "bob", rows); err != nil {
		t.Fatal(err)
	}
	file := exported(t, h, bob)
	there := newShop().open(t, object.Options{})
	if err := imported(there, file, transfer.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if again := exported(t, there, bob); again != file {
		t.Errorf("%s\nwant\n%s", again, file)
	}
}

func open(r *rapid.T, s *shop, o object.Options) (*object.Host, error) {
	o.Storage.Engine, o.Logger = memstore.New(), slog.New(slog.DiscardHandler)
	h, err := object.Open(o, s.carts)
	if err != nil {
		r.Fatal(err)
	}
	return h, err
}

func export(r *rapid.T, from transfer.Source) string {
	var b bytes.Buffer
	if err := transfer.Export(context.Background(), from, bob, &b, transfer.ExportOptions{}); err != nil {
		r.Fatal(err)
	}
	return b.String()
}

// far is the time of alarms that do not come due.
var far = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// Proves O27: exported, deleted and imported into another host, the alarm fires there once, and
// not without Alarms.
func TestAlarmFiresThereOnce(t *testing.T) {
	_, from, file := filled(t, far)
	file = resealed(strings.Replace(file, alarmOf(file), fmt.Sprintf(`{"alarm":{"due":%q,"scheduled":%q}}`, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"), 1))
	if err := from.Delete(context.Background(), bob); err != nil {
		t.Fatal(err)
	}
	there := newShop()
	h := there.open(t, object.Options{})
	if err := imported(h, file, transfer.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if in, err := h.Inspect(context.Background(), bob); err != nil || in.Alarm != nil {
		t.Fatalf("without Alarms: %+v, %v", in.Alarm, err)
	}
	if err := imported(h, file, transfer.ImportOptions{Alarms: true, Replace: true}); err != nil {
		t.Fatal(err)
	}
	if info := <-there.fired; info.Attempt != 1 {
		t.Errorf("%+v", info)
	}
	// A turn behind that of the alarm sees that it is gone.
	if _, err := there.put.Call(context.Background(), h, "bob", map[string][]byte{"total": []byte("500")}); err != nil {
		t.Fatal(err)
	}
	in, err := h.Inspect(context.Background(), bob)
	if err != nil || in.Alarm != nil || len(there.fired) != 0 {
		t.Errorf("%+v, %v, %d more", in.Alarm, err, len(there.fired))
	}
}

// alarmOf is the line of the alarm.
func alarmOf(file string) string {
	return regexp.MustCompile(`(?m)^\{"alarm".*$`).FindString(file)
}

// Proves O27: an object that exists is refused, also in memory alone, and replaced with Replace
// in one commit, with its label, marks and alarm. Proves O28: the line with its name is named.
func TestImportReplaces(t *testing.T) {
	s, h, file := filled(t, far)
	ctx := context.Background()
	if _, err := s.put.Call(ctx, h, "bob", map[string][]byte{"more": []byte("1")}); err != nil {
		t.Fatal(err)
	}
	before := exported(t, h, bob)
	if err := imported(h, file, transfer.ImportOptions{}); !errors.Is(err, object.ErrExists) || !strings.HasPrefix(err.Error(), "line 1: ") {
		t.Fatal(err)
	}
	if after := exported(t, h, bob); after != before {
		t.Errorf("a refused import has changed\n%s\nto\n%s", before, after)
	}
	if err := imported(h, file, transfer.ImportOptions{Replace: true, Alarms: true}); err != nil {
		t.Fatal(err)
	}
	after := exported(t, h, bob)
	if strings.Contains(after, `"more"`) || strings.Count(after, `{"event"`) != 4 {
		t.Errorf("%s", after)
	}
	if labels, _ := h.Labels("cart"); labels["busy"] != 1 {
		t.Errorf("%v", labels)
	}
}

// Proves O27: a class that is not registered takes an import too, and keeps it for the program
// that has the class. Proves O28: there too the line with a name that exists is named.
func TestImportParked(t *testing.T) {
	_, _, file := filled(t, far)
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Shutdown(context.Background())
	for _, replace := range []bool{false, true} {
		if err := imported(h, file, transfer.ImportOptions{Alarms: true, Replace: replace}); err != nil {
			t.Fatal(err)
		}
		if again := exported(t, h, bob); !replace && again != file {
			t.Errorf("%s\nwant\n%s", again, file)
		}
	}
	if err := imported(h, file, transfer.ImportOptions{}); !errors.Is(err, object.ErrExists) || !strings.HasPrefix(err.Error(), "line 1: ") {
		t.Error(err)
	}
	if err := h.Store().Check(); err != nil {
		t.Error(err)
	}
}

// Proves O27: an object with messages that wait is refused with their number, and so is its file
// unless both are told to leave them behind.
func TestMessagesStayBehind(t *testing.T) {
	s := newShop()
	h := s.open(t, object.Options{})
	ctx := context.Background()
	if _, err := s.put.Call(ctx, h, "bob", map[string][]byte{"a": nil}); err != nil {
		t.Fatal(err)
	}
	file := exported(t, h, bob)
	if _, err := s.send.Call(ctx, h, "eve", "bob"); err != nil {
		t.Fatal(err)
	}
	err := transfer.Export(ctx, h, bob, io.Discard, transfer.ExportOptions{})
	if !errors.Is(err, transfer.ErrMessages) || !strings.Contains(err.Error(), "cart/bob: 2 messages") {
		t.Error(err)
	}
	var b bytes.Buffer
	if err := transfer.Export(ctx, h, bob, &b, transfer.ExportOptions{LeaveMessages: true}); err != nil {
		t.Error(err)
	}
	waits := resealed(strings.Replace(file, `"marks":0}`, `"marks":0},"messages":2`, 1))
	if b.String() != waits {
		t.Errorf("%s\nwant\n%s", b.String(), waits)
	}
	if err := imported(newShop().open(t, object.Options{}), waits, transfer.ImportOptions{}); !errors.Is(err, transfer.ErrMessages) || !strings.Contains(err.Error(), "line 1: 2 messages") {
		t.Error(err)
	}
	if err := imported(newShop().open(t, object.Options{}), waits, transfer.ImportOptions{LeaveMessages: true}); err != nil {
		t.Error(err)
	}
}

// Proves O27: what is not there, and what other objects depend on, is refused.
func TestExportRefuses(t *testing.T) {
	h := newShop().open(t, object.Options{})
	err := transfer.Export(context.Background(), h, bob, io.Discard, transfer.ExportOptions{})
	if !errors.Is(err, object.ErrNoObject) || !strings.Contains(err.Error(), "cart/bob") {
		t.Error(err)
	}
	if err := transfer.Export(context.Background(), h, storage.ID{Class: "cart"}, io.Discard, transfer.ExportOptions{}); !errors.Is(err, object.ErrBadName) {
		t.Error(err)
	}
}
