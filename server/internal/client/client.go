// Package client speaks the HTTP API of a server, over TCP or a Unix socket.
//
// An answer that is a problem of RFC 9457 is a *Problem, and a request that gets no answer is an error that
// matches ErrUnreachable. Nothing is repeated: the caller knows whether a repeat does harm.
package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/internal/patience"
)

// ErrUnreachable says that a server has not answered, or not to the end.
var ErrUnreachable = errors.New("cannot reach the server")

// dialTime bounds how long a connection takes to begin.
const dialTime = 10 * time.Second

// maxAnswer bounds the bytes of an answer that is read as a whole. A page of keys has up to 16 MiB before base64.
const maxAnswer = 64 << 20

// Client speaks to one server. Any goroutine may use it.
type Client struct {
	http  *http.Client
	name  string // for errors
	base  string // without a slash at its end
	token string
}

// New returns the client of the server at an address such as https://jobs.example or
// http://127.0.0.1:7070/holdfast. It refuses to send a token in the open: over plain HTTP to another machine.
func New(addr, token string) (*Client, error) {
	u, err := url.Parse(addr)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("%q is no address of a server: write one such as http://127.0.0.1:7070", addr)
	}
	if token != "" && u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil, fmt.Errorf("%q would carry the token in the open: use https, or a tunnel to the loopback of that machine", addr)
	}
	if strings.ContainsAny(token, "\r\n\x00") {
		return nil, errors.New("the token has more than one line")
	}
	return &Client{name: addr, http: with(new(net.Dialer).DialContext), base: strings.TrimRight(addr, "/"), token: token}, nil
}

// OverSocket returns the client of the server that listens on a Unix socket.
func OverSocket(path string) *Client {
	return &Client{name: path, base: "http://localhost", http: with(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	})}
}

// with is a client of HTTP that follows no redirect, because the token is for the server alone.
func with(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Client {
	return &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, patience.Times(dialTime))
			defer cancel()
			return dial(ctx, network, addr)
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// loopback reports whether a host is of this machine alone.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Problem is an error that the server has answered.
type Problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Outcome   string `json:"outcome"`
	Retryable bool   `json:"retryable"`
}

// Error returns the title and the detail. A text that a terminal would not print as it is is quoted.
func (p *Problem) Error() string {
	text := strings.TrimSuffix(p.Title, ".")
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	if q := strconv.Quote(text); strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`) != text {
		text = q
	}
	if p.Outcome == "unknown" {
		text += " (it may have taken effect)"
	}
	return text
}

// Path returns the path with these parts, each of which may be any text.
func Path(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString("/" + url.PathEscape(part))
	}
	return b.String()
}

// Query returns the parameters, given by name and value in turn. Empty values are left out.
func Query(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return v
}

// Cursor returns the cursor of a page of names or keys that begins behind, or at, a text.
func Cursor(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// At returns the text of a Cursor.
func At(cursor string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	return string(b), err
}

// Request is one request.
type Request struct {
	Method, Path string
	Query        url.Values
	Body         []byte    // JSON; nil: none
	Lines        io.Reader // lines of JSON, in place of Body
	Key          string    // Idempotency-Key; empty: none
	accept       string
}

// Get decodes the answer to a GET into *v.
func (c *Client) Get(ctx context.Context, path string, query url.Values, v any) error {
	raw, err := c.Do(ctx, Request{Method: http.MethodGet, Path: path, Query: query})
	if err != nil {
		return err
	}
	return Decode(raw, v)
}

// Post sends a value in JSON and decodes the answer into *v.
func (c *Client) Post(ctx context.Context, path string, body, v any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if raw, err = c.Do(ctx, Request{Method: http.MethodPost, Path: path, Body: raw}); err != nil {
		return err
	}
	return Decode(raw, v)
}

// Decode decodes an answer of Do.
func Decode(raw []byte, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%w: its answer is not that of a server of Holdfast: %w", ErrUnreachable, err)
	}
	return nil
}

// Do makes a request and returns the body of the answer; nil for an empty one.
func (c *Client) Do(ctx context.Context, r Request) ([]byte, error) {
	a, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	case len(raw) > maxAnswer:
		return nil, fmt.Errorf("%w: its answer has more than %d bytes", ErrUnreachable, maxAnswer)
	}
	return raw, nil
}

// Copy writes the answer to a GET to w, however long it is. The error of w is returned as it is.
func (c *Client) Copy(ctx context.Context, path string, query url.Values, w io.Writer) error {
	a, err := c.send(ctx, Request{Method: http.MethodGet, Path: path, Query: query})
	if err != nil {
		return err
	}
	defer a.Body.Close()
	to := &failing{to: w}
	if _, err := io.Copy(to, a.Body); err != nil && to.err == nil {
		return fmt.Errorf("%w: the answer was cut: %w", ErrUnreachable, err)
	}
	return to.err
}

// failing keeps the error of a writer, which tells it from that of the reader.
type failing struct {
	to  io.Writer
	err error
}

func (f *failing) Write(b []byte) (int, error) {
	n, err := f.to.Write(b)
	f.err = err
	return n, err
}

// send makes a request and returns an answer that is no error. The caller closes its body.
func (c *Client) send(ctx context.Context, r Request) (*http.Response, error) {
	target := c.base + r.Path
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	body := r.Lines
	if body == nil {
		body = bytes.NewReader(r.Body)
	}
	q, err := http.NewRequestWithContext(ctx, r.Method, target, body)
	if err != nil {
		return nil, err
	}
	q.Header.Set("User-Agent", "holdfast")
	for name, value := range map[string]string{"Authorization": "Bearer " + c.token, "Idempotency-Key": r.Key, "Accept": r.accept} {
		if value != "" && value != "Bearer " {
			q.Header.Set(name, value)
		}
	}
	switch {
	case r.Lines != nil:
		q.Header.Set("Content-Type", "application/x-ndjson")
	case r.Body != nil:
		q.Header.Set("Content-Type", "application/json")
	}
	a, err := c.http.Do(q)
	if err != nil {
		var plain *url.Error
		if errors.As(err, &plain) {
			err = plain.Err // the address is the user's own
		}
		return nil, fmt.Errorf("%w at %q: %w", ErrUnreachable, c.name, err)
	}
	if a.StatusCode/100 != 2 {
		defer a.Body.Close()
		return nil, c.problem(a)
	}
	return a, nil
}

// maxProblem bounds the bytes of a problem.
const maxProblem = 64 << 10

// problem decodes an answer that is an error.
func (c *Client) problem(a *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(a.Body, maxProblem))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	p := &Problem{}
	if json.Unmarshal(raw, p) != nil || p.Type == "" {
		return fmt.Errorf("%w at %q: the answer is %q, and not of a server of Holdfast", ErrUnreachable, c.name, a.Status)
	}
	p.Status = a.StatusCode
	return p
}
