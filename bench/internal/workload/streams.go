package workload

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
)

type bell struct{ st *object.State }

var (
	bells = object.Define("bell", func(_ context.Context, st *object.State) (*bell, error) { return &bell{st}, nil })
	ring  = object.Handle(bells, "ring", func(b *bell, ctx context.Context, _ struct{}) (struct{}, error) {
		return struct{}{}, b.st.Emit(ctx, "ring", struct{}{})
	})
)

// Streams is a server with streams of events, whose clients are a process of their own, so that
// this one has the memory of the server alone.
type Streams struct {
	*Host
	stop    func() error
	clients *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	objects int
}

// bearers takes each token for a principal of its own, because one principal has 100 streams at most.
type bearers struct{}

func (bearers) Authenticate(r *http.Request) (auth.Principal, error) {
	return auth.Principal{ID: r.Header.Get("Authorization"), Role: auth.Reader}, nil
}

// OpenStreams opens a host with a server. Streams follow so many objects.
func OpenStreams(dir string, objects int) (*Streams, error) {
	h, err := OpenHost(dir, object.Options{}, server.Definitions(bells)...)
	if err != nil {
		return nil, err
	}
	s := &Streams{Host: h, objects: objects}
	at, stop, err := serve(h.Host, server.Config{Auth: bearers{}})
	if err != nil {
		return nil, join(err, h.Close)
	}
	s.stop = stop
	if err := errors.Join(s.Ring(context.Background()), s.startClients(at)); err != nil {
		return nil, join(err, s.Close)
	}
	return s, nil
}

// startClients starts the process of the clients.
func (s *Streams) startClients(at string) (err error) {
	s.clients = exec.Command(os.Args[0])
	s.clients.Env = append(os.Environ(), childEnv+"="+StreamClients, "HOLDFAST_BENCH_DIR="+at, "HOLDFAST_BENCH_N="+strconv.Itoa(s.objects))
	s.clients.Stderr = os.Stderr
	if s.in, err = s.clients.StdinPipe(); err != nil {
		return err
	}
	out, err := s.clients.StdoutPipe()
	if err != nil {
		return err
	}
	s.out = bufio.NewReader(out)
	return s.clients.Start()
}

// Connect opens n more streams, and returns when each has its first frame.
func (s *Streams) Connect(n int) error { return s.tell("connect", n) }

// Seen returns when each stream has one more event.
func (s *Streams) Seen() error { return s.tell("see", 0) }

// tell has the clients do something and waits for its end.
func (s *Streams) tell(what string, n int) error {
	if _, err := fmt.Fprintln(s.in, what, n); err != nil {
		return err
	}
	line, err := s.out.ReadString('\n')
	if err == nil && line != ready+"\n" {
		err = fmt.Errorf("the clients say %q", line)
	}
	return err
}

// Ring has each object emit an event.
func (s *Streams) Ring(ctx context.Context) error {
	return measure.Each(ctx, 64, s.objects, func(i int) error {
		_, err := ring.Call(ctx, s.Host, Name(i), struct{}{})
		return err
	})
}

// Close ends the clients, the server and the host.
func (s *Streams) Close() error {
	var errs []error
	if s.clients != nil && s.clients.Process != nil {
		errs = append(errs, s.in.Close(), s.clients.Wait())
	}
	return errors.Join(append(errs, s.stop(), s.Host.Close())...)
}

// follow is the process of the clients: it does as the lines of from say, until from ends.
func follow(at string, objects int, from io.Reader, tell io.Writer) error {
	var all []*bufio.Reader
	for {
		var what string
		var n int
		if _, err := fmt.Fscanln(from, &what, &n); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		begin := len(all)
		all = append(all, make([]*bufio.Reader, n)...)
		until := []byte("event: event\n")
		if what == "connect" {
			until = []byte("event: snapshot\n")
		} else {
			begin = 0
		}
		err := measure.Each(context.Background(), 64, len(all)-begin, func(i int) (err error) {
			i += begin
			if all[i] == nil {
				if all[i], err = openStream(at, i, objects); err != nil {
					return err
				}
			}
			return readUntil(all[i], until)
		})
		if err != nil {
			return err
		}
		fmt.Fprintln(tell, ready)
	}
}

// openStream sends the request of stream i.
func openStream(at string, i, objects int) (*bufio.Reader, error) {
	c, err := net.Dial("tcp", at)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(c, "GET /v1/objects/bell/%s/events HTTP/1.1\r\nHost: %s\r\nAuthorization: %d\r\n\r\n", Name(i%objects), at, i/100)
	return bufio.NewReaderSize(c, 1<<10), err
}

// readUntil reads lines until one of them, and the rest of its frame.
func readUntil(from *bufio.Reader, line []byte) error {
	for found := false; ; {
		got, err := from.ReadSlice('\n')
		switch {
		case err == bufio.ErrBufferFull: // a part of a long line
		case err != nil:
			return err
		case bytes.Equal(got, line):
			found = true
		case found && len(got) == 1:
			return nil
		}
	}
}
