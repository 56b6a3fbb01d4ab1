package auth

import (
	"fmt"
	"net/netip"
	"sync"
	"time"
)

const (
	// triesMax is how many wrong tokens an address may bring in a triesSpan. A person who
	// pastes the wrong line needs two or three.
	triesMax  = 5
	triesSpan = time.Minute
	// triesAddresses bounds the memory of tries: at most twice as many addresses are
	// remembered. Beyond that the addresses that were quiet for longest get new tries.
	triesAddresses = 4096
)

// TooManyTriesError says that an address has brought too many wrong tokens, and this
// one is wrong too. It matches ErrBadCredentials.
type TooManyTriesError struct {
	After time.Duration // the address has its next try after this time
}

func (e *TooManyTriesError) Error() string {
	return fmt.Sprintf("auth: too many wrong tokens from this address: try again in %v", e.After.Round(time.Second))
}

func (e *TooManyTriesError) Is(target error) bool { return target == ErrBadCredentials }

// tries counts the tries of each address.
type tries struct {
	mu sync.Mutex
	// young has the addresses that tried since it was last full, and old those of the
	// generation before, so that neither needs a list in the order of time.
	young, old map[netip.Prefix]*spent
}

// spent are the last tries of an address: at[next] is the oldest.
type spent struct {
	at   [triesMax]time.Time // zero: none
	next int
}

// take counts a try. It returns 0, or the time to wait if the address has none left; then
// nothing is counted, so that a client which goes on has a try again after a minute.
func (t *tries) take(from netip.Prefix, now time.Time) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of(from)
	if oldest := s.at[s.next]; !oldest.IsZero() && now.Sub(oldest) < triesSpan {
		return triesSpan - now.Sub(oldest)
	}
	s.at[s.next] = now
	s.next = (s.next + 1) % triesMax
	return 0
}

// of returns the tries of an address and makes it one of the young. t.mu is held.
func (t *tries) of(from netip.Prefix) *spent {
	if s := t.young[from]; s != nil {
		return s
	}
	s := t.old[from]
	if s == nil {
		s = &spent{}
	}
	if len(t.young) >= triesAddresses || t.young == nil {
		t.young, t.old = make(map[netip.Prefix]*spent), t.young
	}
	t.young[from] = s
	return s
}

// addressOf is the address of a peer as tries are counted: with IPv6 the network of 64 bits,
// because one machine has all of its addresses. Peers without an address, for example those of
// a pipe, share the zero Prefix.
func addressOf(remote string) netip.Prefix {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := peer.Addr().Unmap().WithZone(""), 64
	if addr.Is4() {
		bits = 32
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}
