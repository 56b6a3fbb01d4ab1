package pgtest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// Moment is where a proxy cuts a connection.
type Moment int

const (
	// Before the server has the statement, so that it does nothing.
	Before Moment = iota
	// After the server has done the statement, so that only its answer is lost.
	After
)

// Proxy stands between clients and a server, without encryption. It passes everything on until it is told to cut.
type Proxy struct {
	// Port is its port on 127.0.0.1.
	Port int

	to       string
	listener net.Listener
	open     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	when  Moment
	left  map[string]int // executions to cut, by a text in their statements
	done  int            // executions that were cut
	held  [2]bool        // by Direction
	waits [2]int         // messages that a Hold has stopped, by Direction
	freed sync.Cond      // with mu: a direction is free again, or the proxy is closed, or one more message waits
}

// Direction is a way through a proxy.
type Direction int

// The directions.
const (
	ToServer Direction = iota
	ToClient
)

// NewProxy starts a proxy in front of a server. It must be closed.
func NewProxy(to *Server) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{Port: l.Addr().(*net.TCPAddr).Port, to: to.Addr(), listener: l, conns: map[net.Conn]bool{}}
	p.freed.L = &p.mu
	p.open.Go(p.accept)
	return p, nil
}

// Cut has the next executions of statements lose their connections at a moment: n[text] of those that contain a text. It takes the
// place of an earlier Cut.
func (p *Proxy) Cut(when Moment, n map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.when, p.left = when, maps.Clone(n)
}

// Hold stops everything in the given directions, as a broken network does: connections stay open and new ones are taken. Free lets
// what was held go on, also to a side that does not wait for it any more.
func (p *Proxy) Hold(ways ...Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range ways {
		p.held[w] = true
	}
}

// WaitHeld waits until Hold has stopped n messages, each of which is the first of its connection and direction.
func (p *Proxy) WaitHeld(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.waits[ToServer]+p.waits[ToClient] < n {
		p.freed.Wait()
	}
}

// Free ends each Hold.
func (p *Proxy) Free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = [2]bool{}
	p.freed.Broadcast()
}

// waitFree waits until a direction is free. It returns false if the proxy is closed.
func (p *Proxy) waitFree(way Direction) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[way] {
		p.waits[way]++
		defer func() { p.waits[way]-- }()
		p.freed.Broadcast()
	}
	for p.held[way] && p.conns != nil {
		p.freed.Wait()
	}
	return p.conns != nil
}

// Done is how many executions were cut.
func (p *Proxy) Done() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// Close cuts all connections and waits until the proxy has ended.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
	p.freed.Broadcast()
	p.mu.Unlock()
	p.open.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.open.Go(func() { p.serve(client) })
	}
}

// serve passes one connection on until either side ends.
func (p *Proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		_ = client.Close()
		return
	}
	if !p.keep(client, server) {
		return
	}
	w := &wire{proxy: p, client: client, server: server, statements: map[string]string{}}
	var both sync.WaitGroup
	both.Go(w.toServer)
	both.Go(w.toClient)
	both.Wait()
	p.mu.Lock()
	delete(p.conns, client)
	delete(p.conns, server)
	p.mu.Unlock()
}

// keep notes connections for Close. After Close it closes them.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.conns == nil {
			_ = c.Close()
		} else {
			p.conns[c] = true
		}
	}
	return p.conns != nil
}

// cuts says whether a statement is to be cut, and where.
func (p *Proxy) cuts(sql string) (Moment, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := ""
	for t, n := range p.left {
		if n > 0 && strings.Contains(sql, t) {
			text = t
		}
	}
	if text == "" {
		return 0, false
	}
	p.left[text]--
	p.done++
	return p.when, true
}

// wire is one connection through the proxy.
type wire struct {
	proxy          *Proxy
	client, server net.Conn
	statements     map[string]string // SQL by the name of the prepared statement
	silent         atomic.Bool       // the answer is lost, and the connection with it once the server is ready
}

func (w *wire) close() {
	_ = w.client.Close()
	_ = w.server.Close()
}

// Types of messages, see the chapter of PostgreSQL's documentation on its protocol.
const (
	parse   = 'P'
	bind    = 'B'
	syncing = 'S'
	ready   = 'Z'
	// held are the messages that a Sync follows: Parse, Bind, Describe, Execute, Close.
	held = "PBDEC"
)

// toServer passes the messages of the client on, those up to a Sync together.
func (w *wire) toServer() {
	defer w.close()
	r := bufio.NewReader(w.client)
	var group []byte
	var sql string // of the statement that the group binds
	first := true  // the first message has no type
	for {
		kind, message, err := next(r, first)
		if err != nil {
			return
		}
		group = append(group, message...)
		first = false
		switch body := message[min(5, len(message)):]; kind {
		case parse:
			name, rest := text(body)
			w.statements[name], _ = text(rest)
		case bind:
			_, rest := text(body)
			name, _ := text(rest)
			sql = w.statements[name]
		}
		if strings.IndexByte(held, kind) >= 0 {
			continue
		}
		if kind == syncing && sql != "" {
			when, cut := w.proxy.cuts(sql)
			if cut && when == Before {
				return
			}
			w.silent.Store(cut)
			sql = ""
		}
		if !w.proxy.waitFree(ToServer) {
			return
		}
		if _, err := w.server.Write(group); err != nil {
			return
		}
		group = group[:0]
	}
}

// toClient passes the messages of the server on.
func (w *wire) toClient() {
	defer w.close()
	r := bufio.NewReader(w.server)
	for {
		kind, message, err := next(r, false)
		if err != nil {
			return
		}
		if w.silent.Load() {
			if kind == ready {
				return
			}
			continue
		}
		if !w.proxy.waitFree(ToClient) {
			return
		}
		if _, err := w.client.Write(message); err != nil {
			return
		}
	}
}

// next reads one message: its type, its length, and its body. The first of a client has no type.
func next(r io.Reader, first bool) (kind byte, message []byte, err error) {
	header := make([]byte, 5)
	if first {
		header = header[:4]
	}
	if _, err := io.ReadFull(r, header); err != nil {
		return 0, nil, err
	}
	if !first {
		kind = header[0]
	}
	length := binary.BigEndian.Uint32(header[len(header)-4:]) // counts itself
	if length < 4 || length > 1<<30 {
		return 0, nil, fmt.Errorf("a message of %d bytes", length)
	}
	message = append(header, make([]byte, length-4)...)
	_, err = io.ReadFull(r, message[len(header):])
	return kind, message, err
}

// text cuts the first text off a body, which ends with a zero.
func text(body []byte) (first string, rest []byte) {
	before, after, _ := bytes.Cut(body, []byte{0})
	return string(before), after
}
