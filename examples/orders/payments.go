package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// payments is the payment server. It makes charges and refunds over HTTP and keeps a
// book of them. It is slow, fails now and then, and answers some requests only when
// their client has gone.
type payments struct {
	book *book
	seed uint64
	tell func(event)

	closing chan struct{} // closed when the server is to end
	failed  chan error    // the first error of the book

	mu   sync.Mutex
	seen map[string]int // requests of this process, by key
}

func newPayments(b *book, seed uint64, tell func(event)) *payments {
	return &payments{
		book: b, seed: seed, tell: tell,
		closing: make(chan struct{}), failed: make(chan error, 1), seen: make(map[string]int),
	}
}

// request is the body of a charge or refund. Its key is in the header Idempotency-Key.
type request struct {
	Order int   `json:"order"`
	Cents int64 `json:"cents,omitempty"` // of a charge
	Of    int   `json:"of,omitempty"`    // of a refund: the number of the charge
}

// answer is the body of a reply.
type answer struct {
	Number int `json:"number"` // of the charge or refund
}

const keyHeader = "Idempotency-Key"

// handler serves POST /charge and POST /refund.
func (p *payments) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charge", func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, charge) })
	mux.HandleFunc("POST /refund", func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, refund) })
	return mux
}

// serve waits, meets the fault of the request, and writes the book.
func (p *payments) serve(w http.ResponseWriter, r *http.Request, k kind) {
	key := r.Header.Get(keyHeader)
	in, err := readRequest(w, r)
	if err != nil || key == "" {
		http.Error(w, "a JSON body and the header "+keyHeader+" are needed", http.StatusBadRequest)
		return
	}
	delay, f := treatment(p.seed, key, p.count(key))
	p.wait(r.Context(), delay)
	if f == refuses {
		p.tell(event{Kind: evFault})
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	if f == lateWork {
		p.waitForEnd(r.Context())
	}
	first, repeat, err := p.book.add(entry{Kind: k, Key: key, Order: in.Order, Cents: in.Cents, Of: in.Of})
	switch {
	case errors.Is(err, errOtherRequest), errors.Is(err, errNoCharge):
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	case err != nil:
		select {
		case p.failed <- err:
		default:
		}
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	case repeat:
		p.tell(event{Kind: evRepeat})
	}
	if f == lateAnswer {
		p.waitForEnd(r.Context())
	}
	if f != none {
		p.tell(event{Kind: evFault})
	}
	if f == forgets {
		http.Error(w, "the connection to the bank was lost", http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(answer{first.Line}) // an error means that the client has gone
}

// readRequest reads the whole body, because the server notices that a client has gone
// only after that.
func readRequest(w http.ResponseWriter, r *http.Request) (in request, err error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<10))
	if err == nil {
		err = json.Unmarshal(text, &in)
	}
	return in, err
}

// count is the number of this request under its key.
func (p *payments) count(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[key]++
	return p.seen[key]
}

// wait waits for a while, or until the server is to end.
func (p *payments) wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-p.closing:
	}
}

// waitForEnd waits until the client has gone or the server is to end.
func (p *payments) waitForEnd(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-p.closing:
	}
}

// endTime is how long a process may take to end in order. Tests wait longer.
var endTime = 5 * time.Second

// run serves requests until ctx ends.
func (p *payments) run(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: p.handler()}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-served:
	case err = <-p.failed:
	}
	close(p.closing)
	late, stop := context.WithTimeout(context.Background(), endTime)
	defer stop()
	return errors.Join(err, server.Shutdown(late), p.book.close())
}

// paymentsConfig is the order that the program gives to its payment server.
type paymentsConfig struct {
	Book string `json:"book"`
	Seed uint64 `json:"seed"`
}

// servePayments is the process of the payment server. The listener is an open file that
// the program hands on, so that the address stays the same when the server is killed:
// connections wait until the next process accepts them.
func servePayments(ctx context.Context, c paymentsConfig, l net.Listener, tell func(event)) error {
	b, err := openBook(c.Book)
	if err != nil {
		return err
	}
	tell(event{Kind: evReady})
	if err := newPayments(b, c.Seed, tell).run(ctx, l); err != nil {
		return fmt.Errorf("payment server: %w", err)
	}
	return nil
}
