package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
)

// serve mounts a server with an address of its own over a host that stays open. stop ends it.
func serve(h *object.Host, c server.Config) (at string, stop func() error, err error) {
	listening, ended := make(chan string, 1), make(chan error, 1)
	c.KeepHost, c.Listening = true, func(at []net.Addr) { listening <- at[0].String() }
	s, err := server.New(h, c)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- s.Serve(ctx, "127.0.0.1:0") }()
	stop = func() error {
		cancel()
		return <-ended
	}
	select {
	case at := <-listening:
		return at, stop, nil
	case err := <-ended:
		cancel()
		return "", nil, err
	}
}

// Visitor asks a server over a host for pages and answers. Its methods may be called at once.
type Visitor struct {
	at     string
	client *http.Client
	stop   func() error
}

// Visit mounts a server over a host, which stays open, and visits it.
func Visit(h *object.Host, c server.Config) (*Visitor, error) {
	at, stop, err := serve(h, c)
	if err != nil {
		return nil, err
	}
	return &Visitor{at, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, stop}, nil
}

// Get asks for a path and returns the size of the answer, which must have status 200.
func (v *Visitor) Get(ctx context.Context, path string) (sizeBytes int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+v.at+path, nil)
	if err != nil {
		return 0, err
	}
	a, err := v.client.Do(r)
	if err != nil {
		return 0, err
	}
	body, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %.200s", path, a.StatusCode, body)
	}
	return len(body), errors.Join(err, a.Body.Close())
}

// Close ends the server.
func (v *Visitor) Close() error {
	v.client.CloseIdleConnections()
	return v.stop()
}
