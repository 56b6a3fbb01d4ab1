package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/holdfast-dev/holdfast/server/auth"
)

// socketScheme begins an address of Serve that is a Unix socket.
const socketScheme = "unix:"

// peer is the process at the other end of a Unix socket of Serve.
type peer struct {
	uid int
	err error // the system does not tell the user
}

// peerKey is the key of a *peer in the context of a connection.
type peerKey struct{}

// peered is the context of a connection: that of a Unix socket knows its peer.
func (s *Server) peered(ctx context.Context, c net.Conn) context.Context {
	if _, ok := c.(*net.UnixConn); !ok {
		return ctx
	}
	uid, err := s.serving.peer(c)
	return context.WithValue(ctx, peerKey{}, &peer{uid, err})
}

// peer returns the process that has sent the request over a Unix socket, or nil.
func (x *exchange) peer() *peer {
	p, _ := x.r.Context().Value(peerKey{}).(*peer)
	return p
}

// check refuses the process of another user, root too.
func (p *peer) check() error {
	if p.err == nil && p.uid == os.Geteuid() {
		return nil
	}
	refused := &problem{Type: "foreign-user", Title: "The socket answers processes of its own user alone.", Status: http.StatusForbidden, Outcome: none,
		Detail: fmt.Sprintf("it belongs to user %d, and the request is of user %d", os.Geteuid(), p.uid)}
	if p.err != nil {
		refused.Detail = "the system does not tell the user: " + p.err.Error()
	}
	return refused
}

// principal finds the principal of the request.
func (x *exchange) principal() (auth.Principal, error) {
	if x.peer() != nil {
		if who, ok := auth.Peer(x.r); ok {
			return who, nil
		}
	}
	return x.config.Auth.Authenticate(x.r)
}
