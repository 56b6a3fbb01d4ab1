package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/server/internal/socket"
)

// defaultShutdownTimeout is shorter than the 30 s after which most platforms kill a process.
const defaultShutdownTimeout = 20 * time.Second

// serving is how far Serve has come.
type serving struct {
	begun   atomic.Bool
	unready atomic.Bool     // the end has begun
	ending  context.Context // ends when long polls are to end
	expire  context.CancelFunc
	sleep   func(time.Duration)
	peer    func(net.Conn) (uid int, err error)
	listen  func(*net.TCPAddr) (net.Listener, error)
}

func newServing() *serving {
	ending, expire := context.WithCancel(context.Background())
	return &serving{ending: ending, expire: expire, sleep: time.Sleep, peer: socket.Peer, listen: listenTCP}
}

// listenTCP listens on a port.
func listenTCP(at *net.TCPAddr) (net.Listener, error) { return net.ListenTCP("tcp", at) }

// untilEnd returns a context for the wait of a long poll: it ends with ctx, after d, and when
// Serve begins to end, which would otherwise wait for it.
func (s *Server) untilEnd(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	stop := context.AfterFunc(s.serving.ending, cancel)
	return ctx, func() { stop(); cancel() }
}

// Serve listens on the addresses, for example "127.0.0.1:7070", and answers until ctx ends.
// It may be called once. It returns nil after an end in order, and else why it ended.
//
// An address that is not of the loopback needs Config.Hosts, and Config.TLS or
// Config.BehindTLS, because tokens would otherwise travel in the open. Port 0 takes a free
// port; Config.Listening tells which.
//
// An address such as "unix:data/.run/holdfast.sock" is a Unix socket, on Linux alone. The command holdfast looks for
// it there, in the directory of the store. Its own directory is made if it is not there, and has the mode 0700. A
// process of the user of this one is an admin there without a token, and that of another user is refused.
// A path of more than 100 bytes has another place: see docs/OPERATIONS.md.
//
// Serve ends in this order:
//
//  1. /readyz answers 503. All else is answered for Config.Linger, so that a load balancer
//     has time to see it.
//  2. The listeners close. Streams, long polls and a backup end, and other requests under way finish.
//  3. The host shuts down, unless Config.KeepHost is set.
//
// Steps 2 and 3 share Config.ShutdownTimeout. After three quarters of it connections are closed
// under their requests, so that the host has the rest; when that is over, handlers of the host are
// cancelled (see object.Host.Shutdown). With Config.KeepHost requests have all of it.
//
// An error, for example of a port that is in use, ends the host in the same way, so that a
// program has nothing left to close. If the host ends by itself, because its store failed,
// Serve goes on: /livez answers 200, /readyz and calls answer 503. Watch Host.Done to end
// the program then.
func (s *Server) Serve(ctx context.Context, addrs ...string) error {
	if !s.serving.begun.CompareAndSwap(false, true) {
		return errors.New("server: Serve was called before: make a Server for each call")
	}
	listeners, err := s.listen(addrs)
	if err != nil {
		s.serving.unready.Store(true)
		return errors.Join(err, s.endHost(s.endTime()))
	}
	s.recordHistory()
	h := s.httpServer()
	ended := make(chan error, len(listeners)) // a slot for each goroutine, so that none waits
	for _, l := range listeners {
		s.spawn(func() {
			err := errors.New("panic")
			defer func() { ended <- err }()
			err = s.accept(h, l)
		})
	}
	if s.config.Listening != nil {
		s.config.Listening(addresses(listeners))
	}
	running := len(listeners)
	select {
	case <-ctx.Done():
	case err = <-ended:
		err = fmt.Errorf("server: accept: %w", err)
		running--
	}
	err = errors.Join(err, s.end(h))
	for range running {
		<-ended
	}
	return err
}

// end ends all that Serve has begun, in order. Its error names the part that did not end in time.
func (s *Server) end(h *http.Server) error {
	s.serving.unready.Store(true)
	s.serving.sleep(s.config.Linger)
	s.EndStreams()
	ctx, cancel := s.endTime()
	requests, done := context.WithTimeout(ctx, s.requestTime())
	defer done()
	err := h.Shutdown(requests)
	if err != nil {
		err = fmt.Errorf("server: shutdown: requests are still under way: %w", errors.Join(err, h.Close()))
	}
	return errors.Join(err, s.backups.wait(requests), s.endHost(ctx, cancel))
}

// EndStreams ends the requests that wait for something that may never come: streams say bye, long polls and a
// drain answer, and the progress of verbs over many ends. A backup under way ends too, without a snapshot or with one
// that is not verified. New streams, long polls and backups get 503. All else is answered. Serve calls it; a program with an http.Server of its own passes it to
// http.Server.RegisterOnShutdown, because http.Server.Shutdown would wait for each stream. It
// returns at once; a second call does nothing.
func (s *Server) EndStreams() {
	s.serving.expire()
	s.streams.end()
}

// requestTime is how much of Config.ShutdownTimeout the requests may take. A quarter is left for the
// host, because one long request would otherwise cut all handlers.
func (s *Server) requestTime() time.Duration {
	if s.config.KeepHost {
		return s.config.ShutdownTimeout
	}
	return s.config.ShutdownTimeout - s.config.ShutdownTimeout/4
}

// endTime returns the context that bounds an end.
func (s *Server) endTime() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), s.config.ShutdownTimeout)
}

// endHost shuts the host down, if that is for Serve to do, and then calls cancel.
func (s *Server) endHost(ctx context.Context, cancel context.CancelFunc) error {
	defer cancel()
	if s.config.KeepHost {
		return nil
	}
	return s.host.Shutdown(ctx)
}

// listen opens a listener for each address, or none.
func (s *Server) listen(addrs []string) ([]net.Listener, error) {
	if len(addrs) == 0 {
		return nil, errors.New("server: Serve needs an address, for example 127.0.0.1:7070")
	}
	var listeners []net.Listener
	for _, addr := range addrs {
		l, err := s.listenOne(addr)
		if err != nil {
			for _, l := range listeners {
				_ = l.Close() // nothing was accepted
			}
			return nil, err
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// listenOne checks an address and listens on the one that it stands for now, so that a name
// cannot be looked up twice with two answers.
func (s *Server) listenOne(addr string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, socketScheme); ok {
		l, err := socket.Listen(path)
		if err != nil {
			return nil, fmt.Errorf("server: address %q: %w", addr, err)
		}
		return l, nil
	}
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("server: address %q: %w", addr, err)
	}
	switch loopback := at.IP.IsLoopback(); {
	case loopback:
	case s.config.TLS == nil && !s.config.BehindTLS:
		return nil, fmt.Errorf("server: address %q is not of the loopback: set Config.TLS, or Config.BehindTLS if a proxy in front of it ends TLS", addr)
	case len(s.config.Hosts) == 0:
		return nil, fmt.Errorf("server: address %q is not of the loopback: set Config.Hosts to the names by which clients reach it", addr)
	}
	l, err := s.serving.listen(at)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return l, nil
}

func addresses(listeners []net.Listener) []net.Addr {
	all := make([]net.Addr, len(listeners))
	for i, l := range listeners {
		all[i] = l.Addr()
	}
	return all
}

// httpServer returns the server of net/http with our bounds. It has no ReadTimeout and no
// WriteTimeout, because each exchange sets the deadlines of its own body and answer.
func (s *Server) httpServer() *http.Server {
	return &http.Server{
		Handler:           s,
		TLSConfig:         s.config.TLS.Clone(),
		ReadHeaderTimeout: s.limits.headerTime,
		IdleTimeout:       s.limits.idleTime,
		MaxHeaderBytes:    s.limits.headerBytes,
		ErrorLog:          slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelWarn),
		ConnContext:       s.peered,
	}
}

// accept serves the connections of a listener until the listener closes.
func (s *Server) accept(h *http.Server, l net.Listener) error {
	if _, ok := l.(*socket.Listener); s.config.TLS != nil && !ok {
		return h.ServeTLS(l, "", "")
	}
	return h.Serve(l)
}
