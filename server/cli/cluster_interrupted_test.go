package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/internal/testing/outside"
	"github.com/holdfast-dev/holdfast/object"
)

// relay is a way to PostgreSQL that calls strike when a client has sent so many packets by it.
type relay struct {
	at     net.Listener
	to     string
	strike func()
	after  int64
	sent   atomic.Int64
	conns  sync.WaitGroup
}

func newRelay(t *testing.T, to string, after int64, strike func()) *relay {
	t.Helper()
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{at: at, to: to, strike: strike, after: after}
	r.conns.Go(func() {
		for {
			client, err := at.Accept()
			if err != nil {
				return // closed
			}
			r.conns.Go(func() { r.serve(client) })
		}
	})
	return r
}

// port is where clients connect.
func (r *relay) port() int { return r.at.Addr().(*net.TCPAddr).Port }

// serve passes on what a client and the server send each other.
func (r *relay) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.to)
	if err != nil {
		return // the client sees that its connection ends
	}
	defer server.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, server) // until either end closes
		_ = client.Close()
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if n > 0 && r.sent.Add(1) == r.after {
			r.strike()
		}
		if n > 0 {
			_, err = server.Write(buffer[:n])
		}
		if err != nil {
			break
		}
	}
	_ = server.Close()
	back.Wait()
}

// close ends the relay; its clients have gone.
func (r *relay) close() error {
	err := r.at.Close()
	r.conns.Wait()
	return err
}

// interrupted runs a verb that is interrupted as it has sent so many packets to PostgreSQL, and reports whether it ended before.
func (w *town) interrupted(after int64, args ...string) (ended bool) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	r := newRelay(w.t, servers.pair.Primary.Addr(), after, cancel)
	var b, errs bytes.Buffer
	all := append([]string{"cluster", "--schema", w.schema, "--dsn", pgtest.DSN(r.port())}, args...)
	code := Run(ctx, Program{}, all, strings.NewReader(""), &b, &errs)
	if err := r.close(); err != nil {
		w.t.Fatal(err)
	}
	if code == Interrupted && strings.HasSuffix(errs.String(), "holdfast: interrupted\n") {
		return false
	}
	if code == Fine {
		return ctx.Err() == nil
	}
	w.t.Fatalf("cluster %s, interrupted, ended with %d and printed %s%s", strings.Join(args, " "), code, &b, &errs)
	return false
}

// everySo is how many packets lie between the points at which the tests interrupt a verb. It is odd, so that both halves of TestClusterInterruptedMoves come about.
const everySo = 13

// interrupts runs a story in a cluster of its own for each point at which it interrupts a verb, until it interrupts none.
func interrupts(t *testing.T, story func(w *town, after int64) (ended bool)) {
	t.Helper()
	outside.Postgres(t) // else each story is skipped, and there are more without end
	for after, ended := int64(1), false; !ended && !t.Failed(); after += everySo {
		t.Run(fmt.Sprint("after ", after, " packets"), func(t *testing.T) {
			w := newTown(t)
			w.wants(Fine, "", "init")
			if ended = story(w, after); ended && after == 1 {
				t.Error("the verb was never interrupted")
			}
		})
	}
}

// holdsAlice fails unless a directory is a store with the cart of alice.
func holdsAlice(t *testing.T, dir string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Run(t.Context(), Program{}, []string{"--dir", dir, "ls", "cart"}, strings.NewReader(""), &out, &errs); code != Fine || !strings.Contains(out.String(), "alice") {
		t.Fatalf("ls of %s ended with %d and printed %s%s", dir, code, &out, &errs)
	}
}

// A move that is interrupted says so, and goes on when it is run again. An import that is taken back leaves the store as it was.
func TestClusterInterruptedMoves(t *testing.T) {
	interrupts(t, func(w *town, after int64) bool {
		dir, out := plain(w.t), filepath.Join(w.t.TempDir(), "out")
		ended := w.interrupted(after, "import", dir)
		if after%2 == 0 {
			if code, _ := w.run("import", dir, "--undo"); code == Fine {
				holdsAlice(w.t, dir)
			}
		}
		w.wants(Fine, "in the cluster", "import", dir)
		w.wants(Fine, "the store is in", "export", out)
		holdsAlice(w.t, out)
		return ended
	})
	interrupts(t, func(w *town, after int64) bool {
		dir, out := plain(w.t), filepath.Join(w.t.TempDir(), "out")
		w.wants(Fine, "in the cluster", "import", dir)
		ended := w.interrupted(after, "export", out)
		w.wants(Fine, "the store is in", "export", out)
		holdsAlice(w.t, out)
		return ended
	})
}

// A recovery that is interrupted says so, and is done once when it is run again: no record is back twice, and the epoch has one leap.
func TestClusterInterruptedRecoveries(t *testing.T) {
	for _, way := range []struct {
		epoch uint64
		carts int // of the three, the last of which is lost
		args  func(file string) []string
	}{
		{2, 3, func(file string) []string { return []string{"recover", "--append", file} }},
		{2 + 1<<20, 2, func(string) []string { return []string{"recover", "--accept-loss"} }},
	} {
		interrupts(t, func(w *town, after int64) bool {
			args := way.args(w.lose())
			ended := w.interrupted(after, args...)
			if code, out := w.run(args...); code != Fine && (code != Refused || !strings.Contains(out, "nothing to recover")) {
				w.t.Fatalf("%v, run again, ended with %d and printed %s", args, code, out)
			}
			n := w.join("b")
			h, _ := n.Active()
			if got := uint64(h.Store().Epoch()); got != way.epoch {
				w.t.Errorf("%v: epoch %d, want %d", args, got, way.epoch)
			}
			if list, err := h.Objects(w.t.Context(), carts.Name(), object.ObjectsOptions{}); err != nil || len(list) != way.carts {
				w.t.Errorf("%v: %d carts, %v, want %d", args, len(list), err, way.carts)
			}
			return ended
		})
	}
}
