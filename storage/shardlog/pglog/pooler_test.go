package pglog

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
)

// Open refuses a pooler that mixes sessions, however many backends it has, and whether or not it passes the settings of its clients on.
func TestOpenRefusesPoolers(t *testing.T) {
	pair := shared(t)
	o := options(t, pair)
	for _, c := range []struct {
		about    string
		backends int
		settings bool
	}{
		{"one backend", 1, true},
		{"two backends", 2, true},
		{"settings that are lost", 1, false},
	} {
		t.Run(c.about, func(t *testing.T) {
			p := newPooler(t, pair.Primary, c.backends, c.settings)
			direct := o
			direct.DSN = pgtest.DSN(p.port)
			l, err := Open(context.Background(), direct)
			if err == nil {
				l.Close()
			}
			if !errors.Is(err, errPooler) {
				t.Errorf("open through a pooler: %v, want %v", err, errPooler)
			}
		})
	}
}

// pooler gives each statement of its clients to the backend that has been free for the longest time.
type pooler struct {
	t        *testing.T
	port     int
	settings bool // of clients are passed on
	to       *pgtest.Server

	mu      sync.Mutex
	missing int // backends that are yet to be started
	free    chan *pgproto3.Frontend
	conns   []net.Conn
	serving sync.WaitGroup
}

func newPooler(t *testing.T, to *pgtest.Server, backends int, settings bool) *pooler {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &pooler{t: t, port: listener.Addr().(*net.TCPAddr).Port, settings: settings, to: to, missing: backends, free: make(chan *pgproto3.Frontend, backends)}
	p.serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			p.serving.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.serving.Wait()
	})
	return p
}

// serve answers one client.
func (p *pooler) serve(c net.Conn) {
	p.mu.Lock()
	p.conns = append(p.conns, c)
	p.mu.Unlock()
	client := pgproto3.NewBackend(c, c)
	first, err := client.ReceiveStartupMessage()
	startup, ok := first.(*pgproto3.StartupMessage)
	if err != nil || !ok {
		_ = c.Close() // the cancel of a statement
		return
	}
	p.fill(startup.Parameters)
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for client.Flush() == nil && p.relay(client) {
	}
}

// fill starts the backends that are missing.
func (p *pooler) fill(parameters map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.settings {
		parameters = map[string]string{"user": "postgres", "database": "postgres"}
	}
	for ; p.missing > 0; p.missing-- {
		c, err := net.Dial("tcp", p.to.Addr())
		if err != nil {
			p.t.Error(err)
			return
		}
		p.conns = append(p.conns, c)
		f := pgproto3.NewFrontend(c, c)
		f.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: parameters})
		if err := f.Flush(); err != nil {
			p.t.Error(err)
		}
		_ = untilReady(f, func(pgproto3.BackendMessage) {})
		p.free <- f
	}
}

// relay passes one statement to a backend, and the answer back.
func (p *pooler) relay(client *pgproto3.Backend) bool {
	m, err := client.Receive()
	if _, end := m.(*pgproto3.Terminate); end || err != nil {
		return false
	}
	server := <-p.free
	defer func() { p.free <- server }()
	for ; err == nil; m, err = client.Receive() {
		server.Send(m)
		switch m.(type) {
		case *pgproto3.Sync, *pgproto3.Query:
			return server.Flush() == nil && untilReady(server, client.Send) == nil
		}
	}
	return false
}

// untilReady hands on the messages of a server until it is ready for the next statement.
func untilReady(f *pgproto3.Frontend, each func(pgproto3.BackendMessage)) error {
	for {
		m, err := f.Receive()
		if err != nil {
			return err
		}
		each(m)
		if _, ready := m.(*pgproto3.ReadyForQuery); ready {
			return nil
		}
	}
}
