package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
)

// payingShop is a payment server in this process, with its client and its events.
type payingShop struct {
	*httpBank
	book    *book
	events  chan event
	path    string        // of the book
	arrived chan struct{} // gets a value for each request that was read
}

func newPayingShop(t *testing.T) *payingShop {
	t.Helper()
	path := filepath.Join(t.TempDir(), "book")
	b, err := openBook(path)
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan event, 100)
	p := newPayments(b, 1, func(e event) { events <- e })
	arrived := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = &wholeBody{r.Body, func() { arrived <- struct{}{} }}
		p.handler().ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.Close(); shut(t, b) })
	client := newHTTPBank(strings.TrimPrefix(server.URL, "http://"))
	client.client.Timeout = 0 // because a sync may take long
	return &payingShop{client, b, events, path, arrived}
}

// wholeBody is the body of a request that tells when it has been read.
type wholeBody struct {
	io.ReadCloser
	arrived func()
}

func (b *wholeBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.arrived()
	}
	return n, err
}

// reached waits until a request with the fault waits for its client to leave.
func (p *payingShop) reached(f fault) {
	<-p.arrived
	for f == lateAnswer { // the charge comes first
		if lines, _, err := readBook(p.path); err == nil && len(lines) == 1 {
			return
		}
	}
}

// keyFor is a key whose first requests meet these faults, and the next one none.
func keyFor(t *testing.T, wanted ...fault) string {
	t.Helper()
next:
	for i := range 1_000_000 {
		key := fmt.Sprintf("key-%d-%d", len(wanted), i)
		for n, want := range append(wanted, none) {
			if _, f := treatment(1, key, n+1); f != want {
				continue next
			}
		}
		return key
	}
	t.Fatalf("no key meets %v", wanted)
	return ""
}

func (p *payingShop) want(t *testing.T, kind string) {
	t.Helper()
	if e := <-p.events; e.Kind != kind {
		t.Errorf("the payment server told %+v, want %s", e, kind)
	}
}

// A charge and its refund are made once each, however often they are asked for.
func TestPayments(t *testing.T) {
	p, ctx, o := newPayingShop(t), context.Background(), orderOf(7)
	pay, back := keyFor(t, none, none), keyFor(t, none, none, none)
	for range 2 {
		if n, err := p.charge(ctx, pay, o); n != 1 || err != nil {
			t.Errorf("charge %d, %v", n, err)
		}
		if err := p.refund(ctx, back, o, 1); err != nil {
			t.Error(err)
		}
	}
	p.want(t, evRepeat)
	p.want(t, evRepeat)
	if len(p.book.lines) != 2 || p.book.lines[1] != (entry{Line: 2, Kind: refund, Key: back, Order: 7, Cents: o.Cents, Of: 1}) {
		t.Errorf("the book has %+v", p.book.lines)
	}
}

// A fault leaves the client without an answer, whether the charge was made or not. A repeat
// under the same key gets one, and the book has one charge.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		fault  fault
		booked int // lines of the book after the fault
	}{
		{refuses, 0}, {forgets, 1}, {lateAnswer, 1}, {lateWork, 1},
	} {
		p, key, o := newPayingShop(t), keyFor(t, c.fault), orderOf(3)
		late := c.fault == lateAnswer || c.fault == lateWork
		ctx, cancel := context.WithCancel(context.Background())
		if late {
			go func() { p.reached(c.fault); cancel() }()
		}
		n, err := p.charge(ctx, key, o)
		cancel()
		if err == nil || object.IsPermanent(err) {
			t.Errorf("fault %d: charge %d, %v", c.fault, n, err)
		}
		if late != errors.Is(err, context.Canceled) {
			t.Errorf("fault %d: %v", c.fault, err)
		}
		p.want(t, evFault)
		if len(p.book.lines) != c.booked {
			t.Errorf("fault %d: the book has %d lines", c.fault, len(p.book.lines))
		}
		if n, err := p.charge(context.Background(), key, o); n != 1 || err != nil {
			t.Errorf("after fault %d: charge %d, %v", c.fault, n, err)
		}
		if c.booked > 0 {
			p.want(t, evRepeat)
		}
		if len(p.book.lines) != 1 || len(p.events) > 0 {
			t.Errorf("after fault %d the book has %d lines, and %d events wait", c.fault, len(p.book.lines), len(p.events))
		}
	}
}

// A request that can never be done gets an answer that is Permanent.
func TestRequestsThatNoRepeatHeals(t *testing.T) {
	p, ctx := newPayingShop(t), context.Background()
	if _, err := p.charge(ctx, "", orderOf(3)); !object.IsPermanent(err) || !strings.Contains(err.Error(), keyHeader) {
		t.Errorf("without a key: %v", err)
	}
	if err := p.refund(ctx, keyFor(t), orderOf(3), 1); !object.IsPermanent(err) || !strings.Contains(err.Error(), errNoCharge.Error()) {
		t.Errorf("a refund of nothing: %v", err)
	}
	key := keyFor(t, none)
	if _, err := p.charge(ctx, key, orderOf(3)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.charge(ctx, key, orderOf(4)); !object.IsPermanent(err) || !strings.Contains(err.Error(), errOtherRequest.Error()) {
		t.Errorf("a key of another request: %v", err)
	}
}

// A payment server that is told to end answers the requests that it has, also those whose
// client was to go first.
func TestPaymentServerEndsInOrder(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "book")
	ctx, end := context.WithCancel(context.Background())
	defer end()
	events, over := make(chan event, 100), make(chan error, 1)
	go func() { over <- servePayments(ctx, paymentsConfig{path, 1}, l, func(e event) { events <- e }) }()
	answered := make(chan error, 1)
	go func() {
		client := newHTTPBank(l.Addr().String())
		client.client.Timeout = 0 // it waits until the server ends
		_, err := client.charge(context.Background(), keyFor(t, lateAnswer), orderOf(3))
		answered <- err
	}()
	for {
		if lines, _, err := readBook(path); err != nil || len(lines) == 1 {
			break // the charge is made, and the answer waits
		}
	}
	end()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	if e := <-events; e.Kind != evReady {
		t.Errorf("the first event is %+v", e)
	}
}

// A book that cannot be written ends the payment server with an error.
func TestPaymentServerWithoutBook(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := written(t, filepath.Join(t.TempDir(), "book"))
	shut(t, b)
	over := make(chan error, 1)
	go func() { over <- newPayments(b, 1, func(event) {}).run(context.Background(), l) }()
	if _, err := newHTTPBank(l.Addr().String()).charge(context.Background(), keyFor(t), orderOf(3)); err == nil || object.IsPermanent(err) {
		t.Errorf("the client got %v", err)
	}
	if err := <-over; err == nil || !strings.Contains(err.Error(), "write the book") {
		t.Errorf("the server ended with %v", err)
	}
}

// The same seed treats the same requests alike, another seed does not. Each fault happens
// as often as it should.
func TestTreatment(t *testing.T) {
	var met [faults]int
	differ := 0
	const requests = 20_000
	for i := range requests {
		key := fmt.Sprint(i / 4)
		d, f := treatment(1, key, i%4)
		again, same := treatment(1, key, i%4)
		if d != again || f != same || d < 0 || d >= slowest {
			t.Fatalf("request %d of key %s: %s and %d, then %s and %d", i%4, key, d, f, again, same)
		}
		if other, _ := treatment(2, key, i%4); other != d {
			differ++
		}
		met[f]++
	}
	for f := refuses; f < faults; f++ {
		if want := requests * percent[f] / 100; met[f] < want*8/10 || met[f] > want*12/10 {
			t.Errorf("fault %d happened %d times in %d, want about %d", f, met[f], requests, want)
		}
	}
	if differ < requests*9/10 {
		t.Errorf("another seed treats %d of %d requests differently", differ, requests)
	}
}
