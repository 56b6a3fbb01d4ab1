package workload

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
)

// Web is connections to a server on the loopback. The client does as little as it can, because
// it runs on the same processors: it sends requests that were written before, and reads of an
// answer the status and the length.
type Web struct {
	requests [][]byte // by object; with keys only the first part of the header
	keys     bool     // an Idempotency-Key of its own for each request
	argument string
	sent     atomic.Int64 // the number of the last key
	idle     chan *webConn
	all      []*webConn
	stop     func() error // the server
}

type webConn struct {
	net.Conn
	in   *bufio.Reader
	text []byte // of a request with a key
}

// WebOptions say how the requests of a Web are.
type WebOptions struct {
	Connections int
	Objects     int
	Method      string // of class counter, see Counters
	Argument    string // in JSON
	// Token makes each request bring a token, which is looked up in a file of tokens. Without
	// it the server takes each request for one of the same principal.
	Token bool
	// Keys gives each request an Idempotency-Key of its own.
	Keys bool
	// Bounded gives the strawman the headers of safety of our server in each answer, deadlines for the body and the answer, and an end of the
	// wait, because a server that strangers reach needs them.
	Bounded bool
}

// everyone lets all requests do all that a benchmark does.
type everyone struct{}

func (everyone) Authenticate(*http.Request) (auth.Principal, error) { return caller, nil }

var caller = auth.Principal{ID: "bench", Grants: []auth.Grant{{Class: CounterClass}}}

// newToken makes a file of tokens with one, which lets its requests do as caller does.
func newToken(dir string) (*auth.TokenFile, string, error) {
	tokens, err := auth.Tokens(filepath.Join(dir, "tokens.json"), auth.Options{Create: true})
	if err != nil {
		return nil, "", err
	}
	_, text, err := tokens.Add(auth.Token{Name: caller.ID, Grants: caller.Grants})
	if err != nil {
		return nil, "", join(err, tokens.Close)
	}
	return tokens, text, nil
}

// Serve mounts a server over the counters and connects to it. tokens is the directory of the
// file of tokens.
func (c *Counters) Serve(o WebOptions, tokens string) (*Web, error) {
	config := server.Config{Objects: []server.Exposed{server.Class(counters)}, Auth: everyone{}}
	token, forget := "", func() error { return nil }
	if o.Token {
		file, text, err := newToken(tokens)
		if err != nil {
			return nil, err
		}
		config.Auth, token, forget = file, text, file.Close
	}
	at, stop, err := serve(c.Host.Host, config)
	if err != nil {
		return nil, join(err, forget)
	}
	return connect(at, token, o, func() error { return errors.Join(stop(), forget()) })
}

// ServeRaw mounts the strawman: net/http with a multiplexer, and behind it the work of
// Counters without a runtime. A read is of a mailbox; an increment is a turn of turns, whose answer
// waits for the sync.
func ServeRaw(turns *raw.Turns, o WebOptions) (*Web, error) {
	index := map[string]int{}
	for i, name := range Names(o.Objects) {
		index[name] = i
	}
	boxes := raw.NewNamedMailboxes(Names(o.Objects))
	call := func(ctx context.Context, r *http.Request) (n uint64, err error) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = json.Unmarshal(body, &n)
		}
		switch name := r.PathValue("name"); {
		case err != nil:
		case r.PathValue("method") == "read":
			n = boxes.ReadNamed(name)
		default:
			err = turns.Increment(index[name])
		}
		return n, err
	}
	answer := plain
	if o.Bounded {
		answer = bounded
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/objects/{class}/{name}/call/{method}", func(w http.ResponseWriter, r *http.Request) {
		n, err := answer(call, w, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(strconv.AppendUint(nil, n, 10)) // a client that is gone counts as an error of its own
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &http.Server{Handler: mux}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	return connect(l.Addr().String(), "", o, func() error {
		err := s.Close()
		if end := <-ended; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
		return err
	})
}

// The times of a bounded strawman are those of our server.
const (
	bodyTime, answerTime = 10 * time.Second, 10 * time.Second
	waitTime             = time.Minute
)

// work is the work of a request.
type work func(ctx context.Context, r *http.Request) (uint64, error)

// plain does the work of a request.
func plain(do work, _ http.ResponseWriter, r *http.Request) (uint64, error) {
	return do(r.Context(), r)
}

// bounded is plain with the headers and the deadlines of WebOptions.Bounded, by the standard library.
func bounded(do work, w http.ResponseWriter, r *http.Request) (uint64, error) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	ctx, cancel := context.WithTimeout(r.Context(), waitTime)
	defer cancel()
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(bodyTime)); err != nil {
		return 0, err
	}
	n, err := do(ctx, r)
	return n, errors.Join(err, control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Now().Add(answerTime)))
}

// connect opens the connections and writes the requests. If it fails, it calls stop.
func connect(at, token string, o WebOptions, stop func() error) (*Web, error) {
	w := &Web{idle: make(chan *webConn, o.Connections), keys: o.Keys, argument: o.Argument, stop: stop}
	for _, name := range Names(o.Objects) {
		var b bytes.Buffer
		fmt.Fprintf(&b, "POST /v1/objects/%s/%s/call/%s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", CounterClass, name, o.Method, at, len(o.Argument))
		if token != "" {
			fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", token)
		}
		if !o.Keys {
			fmt.Fprintf(&b, "\r\n%s", o.Argument)
		}
		w.requests = append(w.requests, b.Bytes())
	}
	for range o.Connections {
		c, err := net.Dial("tcp", at)
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
		wc := &webConn{Conn: c, in: bufio.NewReader(c)}
		w.all = append(w.all, wc)
		w.idle <- wc
	}
	return w, nil
}

// Send sends the request for object i modulo their number, and waits for the answer.
func (w *Web) Send(i int) error {
	c := <-w.idle
	defer func() { w.idle <- c }()
	request := w.requests[i%len(w.requests)]
	if w.keys {
		c.text = append(append(c.text[:0], request...), "Idempotency-Key: "...)
		c.text = append(strconv.AppendInt(c.text, w.sent.Add(1), 10), "\r\n\r\n"...)
		c.text = append(c.text, w.argument...)
		request = c.text
	}
	if _, err := c.Write(request); err != nil {
		return err
	}
	return c.answer()
}

// answer reads an answer, which must have status 200 and tell its length.
func (c *webConn) answer() error {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	status := strings.TrimSpace(string(line))
	length := -1
	for {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			return err
		}
		if len(line) <= len("\r\n") {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return fmt.Errorf("an answer without a length: %s", status)
	}
	if status != "HTTP/1.1 200 OK" {
		body, err := io.ReadAll(io.LimitReader(c.in, int64(length)))
		return errors.Join(fmt.Errorf("%s: %s", status, body), err)
	}
	_, err = c.in.Discard(length)
	return err
}

// Close closes the connections and ends the server.
func (w *Web) Close() error {
	var errs []error
	for _, c := range w.all {
		errs = append(errs, c.Close())
	}
	return errors.Join(append(errs, w.stop())...)
}
