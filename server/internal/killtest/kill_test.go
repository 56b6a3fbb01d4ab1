package killtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		os.Exit(program(dir))
	}
	os.Exit(m.Run())
}

// operation is a call with a key of its own.
type operation struct {
	book, key string
	first     *answer // the first answer; nil: none has come yet
}

// clients share the answers that they got.
type clients struct {
	t *testing.T

	mu   sync.Mutex // guards all below
	all  []*operation
	rand *rand.Rand
}

// bookCount is small, so that calls meet.
const bookCount = 4

// next returns a new operation, or for one in four an earlier one, which may be under way.
func (c *clients) next() *operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) > 0 && c.rand.IntN(4) == 0 {
		recent := c.all[max(0, len(c.all)-1-c.rand.IntN(64)):]
		return recent[0]
	}
	o := &operation{book: fmt.Sprint("book-", c.rand.IntN(bookCount)), key: fmt.Sprint("operation-", len(c.all))}
	c.all = append(c.all, o)
	return o
}

// unanswered returns the operations without an answer.
func (c *clients) unanswered() (left []*operation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.all {
		if o.first == nil {
			left = append(left, o)
		}
	}
	return left
}

// send sends an operation. It returns an error if the program died meanwhile.
func (c *clients) send(ctx context.Context, h *http.Client, at string, o *operation) error {
	body, err := json.Marshal(o.key)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at+"/v1/objects/book/"+o.book+"/call/add", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Idempotency-Key", o.key)
	r.GetBody = nil // package http must not repeat it by itself
	res, err := h.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	var a answer
	if res.StatusCode != http.StatusOK || json.Unmarshal(text, &a) != nil {
		c.t.Errorf("%s: status %d, %s", o.key, res.StatusCode, text)
		return errors.New("refused")
	}
	c.told(o, a)
	return nil
}

// told compares an answer with the first one.
func (c *clients) told(o *operation, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case a.Times != 1:
		c.t.Errorf("%s took effect %d times", o.key, a.Times)
	case o.first == nil:
		o.first = &a
	case *o.first != a:
		c.t.Errorf("%s was answered %+v, and then %+v", o.key, *o.first, a)
	}
}

// life is one process of the program.
type life struct {
	cmd   *exec.Cmd
	stdin io.Closer
	at    string // its address
	said  *bytes.Buffer
}

// start starts the program and waits until it listens.
func start(t *testing.T, dir string) *life {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+dir)
	l := &life{cmd: cmd, said: &bytes.Buffer{}}
	cmd.Stderr = l.said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.stdin = stdin
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		t.Fatalf("the program did not listen: %v\n%s", err, l.said)
	}
	l.at = strings.TrimSpace(line)
	return l
}

// call lets eight clients send operations until the program has answered so many, then ends
// it by kill.
func (l *life) call(c *clients, answers int64, kill func()) {
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	defer transport.CloseIdleConnections()
	h := &http.Client{Transport: transport}
	var answered atomic.Int64
	var over sync.WaitGroup
	for range 8 {
		over.Go(func() {
			for o := c.next(); c.send(c.t.Context(), h, l.at, o) == nil; o = c.next() {
				if answered.Add(1) == answers {
					kill()
				}
			}
		})
	}
	over.Wait()
}

// kills is how often the program is killed.
func kills(t *testing.T) int {
	text := os.Getenv("HOLDFAST_SERVER_KILLS")
	if text == "" {
		return 5
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("HOLDFAST_SERVER_KILLS is %q: it must be a number from 1", text)
	}
	return n
}

// A call that was answered is in the store, whenever the process was killed, and a repeat
// under its key gets the first answer and changes nothing. Proves V2 and V3.
func TestKilledServerKeepsItsAnswers(t *testing.T) {
	dir := t.TempDir()
	c := &clients{t: t, rand: rand.New(rand.NewPCG(7, 11))}
	cut := 0 // operations without an answer, over all kills
	for range kills(t) {
		l := start(t, dir)
		for _, o := range c.unanswered() { // each client repeats its calls without an answer
			if err := c.send(t.Context(), http.DefaultClient, l.at, o); err != nil {
				t.Fatalf("%v\n%s", err, l.said)
			}
		}
		http.DefaultClient.CloseIdleConnections()
		kill := func() { _ = l.cmd.Process.Kill() }
		l.call(c, 20+c.rand.Int64N(400), kill)
		kill()           // if the clients have ended by a wrong answer
		_ = l.cmd.Wait() // it says that it was killed
		if t.Failed() {
			t.Fatalf("the program said:\n%s", l.said)
		}
		cut += len(c.unanswered())
	}
	l := start(t, dir)
	for _, o := range c.all {
		if err := c.send(t.Context(), http.DefaultClient, l.at, o); err != nil {
			t.Fatalf("%v\n%s", err, l.said)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if err := errors.Join(l.cmd.Process.Signal(os.Interrupt), l.cmd.Wait()); err != nil {
		t.Fatalf("the program did not end in order: %v\n%s", err, l.said)
	}
	if cut == 0 {
		t.Error("no kill left a call without an answer")
	}
	compare(t, dir, c.all)
	t.Logf("%d calls, %d of them without an answer at a kill", len(c.all), cut)
}

// compare opens the store and looks at each operation.
func compare(t *testing.T, dir string, all []*operation) {
	host, err := object.Open(object.Options{Dir: dir}, books)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := host.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	count, total := map[string]int{}, map[string]int{}
	for _, o := range all {
		a, err := times.Call(t.Context(), host, o.book, o.key)
		if err != nil || a.Times != 1 {
			t.Errorf("the store has %s %d times (%v), want once", o.key, a.Times, err)
		}
		count[o.book]++
		total[o.book] = a.Total
	}
	for book, n := range count {
		if total[book] != n {
			t.Errorf("%s has a total of %d after %d operations", book, total[book], n)
		}
	}
}
