package webhook

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

const (
	maxURLBytes = 2048
	httpsPort   = "443"
)

// private are the addresses of IPv4 that are not public, by the registry of IANA for addresses of special purpose, with those of multicast.
var private = prefixes("0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 " +
	"192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4")

// public6 are the addresses of IPv6 that are given out to the public, and special6 those among them that are not, or that lead to others of IPv4.
var (
	public6  = netip.MustParsePrefix("2000::/3")
	special6 = prefixes("2001::/23 2001:db8::/32 2002::/16 3fff::/20")
)

func prefixes(list string) (all []netip.Prefix) {
	for _, p := range strings.Fields(list) {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
}

// checkAddress returns an error unless an address is public.
func checkAddress(a netip.Addr) error {
	among := private
	if a.Is6() {
		among = special6
	}
	if a.Is6() && !public6.Contains(a.WithZone("")) {
		return fmt.Errorf("the address %v is not public", a)
	}
	for _, p := range among {
		if p.Contains(a.WithZone("")) {
			return fmt.Errorf("the address %v is not public", a)
		}
	}
	return nil
}

// checkConnection is net.Dialer.Control: it sees the address after the resolution, just before the connection is made.
func checkConnection(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if at.Port() != 443 {
		return fmt.Errorf("the port %d is not %s", at.Port(), httpsPort)
	}
	return checkAddress(at.Addr())
}

// checkURL returns an ErrInvalid for a URL to which nothing is sent.
func (w *Webhooks) checkURL(text string) error {
	bad := func(why string) error { return fmt.Errorf("%w: the URL %s", ErrInvalid, why) }
	if len(text) > maxURLBytes {
		return bad(fmt.Sprintf("has more than %d bytes", maxURLBytes))
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return bad("cannot be read")
	case u.Scheme != "https" && !(u.Scheme == "http" && w.config.AllowPrivate):
		return bad("does not begin with https://")
	case u.Hostname() == "":
		return bad("has no host")
	case u.User != nil:
		return bad("has a user name, which the log would show; the signature names the sender")
	case u.Fragment != "":
		return bad("has a fragment")
	case w.config.AllowPrivate:
		return nil
	case u.Port() != "" && u.Port() != httpsPort:
		return bad("has a port that is not " + httpsPort)
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return bad("is of this machine")
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if err := checkAddress(a); err != nil {
			return bad("is refused: " + err.Error())
		}
	}
	return nil
}

// dialer makes connections, to public addresses alone unless Config.AllowPrivate is set.
func dialer(c Config, resolver *net.Resolver) *net.Dialer {
	d := &net.Dialer{Timeout: c.Timeout, Resolver: resolver}
	if !c.AllowPrivate {
		d.Control = checkConnection
	}
	return d
}
