//go:build !linux

package socket

import (
	"errors"
	"net"
)

var errSystem = errors.New("a Unix socket is possible on Linux alone, which tells the user at its other end: name an address of the loopback")

// Listener is the listener of a socket.
type Listener struct{ *net.UnixListener }

// Listen returns an error on this system.
func Listen(string) (*Listener, error) { return nil, errSystem }

// Answers reports false on this system.
func Answers(string) bool { return false }

// Peer returns an error on this system.
func Peer(net.Conn) (uid int, err error) { return -1, errSystem }
