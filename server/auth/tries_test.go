package auth

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"
)

// wrong brings a wrong token by a bearer header or the form, and reports how long the address must
// wait; negative: it may try again.
func (f *fixture) wrong(address string, form bool) time.Duration {
	f.t.Helper()
	r := request("holdfast_wrong")
	r.RemoteAddr = address
	_, err := f.Authenticate(r)
	if form {
		_, _, err = f.SignIn(r, "holdfast_wrong", false)
	}
	if !errors.Is(err, ErrBadCredentials) {
		f.t.Fatalf("a wrong token: %v", err)
	}
	if e := (*TooManyTriesError)(nil); errors.As(err, &e) {
		f.clean(err.Error())
		return e.After
	}
	return -1
}

// An address has 5 wrong tokens a minute, in the form and by bearer each; the sixth gets the time
// to wait. A right token is accepted all the time. Proves V12.
func TestFiveTriesAMinute(t *testing.T) {
	const here, there = "192.0.2.1:1234", "192.0.2.2:1234"
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ann", Role: Viewer})
		form := func(address, text string) error {
			r := httptest.NewRequest("POST", "/signin", nil)
			r.RemoteAddr = address
			_, _, err := f.SignIn(r, text, false)
			return err
		}
		var many *TooManyTriesError
		for range 20 { // right tokens are no tries
			if err := form(here, text); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 5 {
			if err := form(here, "wrong"); !errors.Is(err, ErrBadCredentials) || errors.As(err, &many) {
				t.Errorf("try %d: %v", i+1, err)
			}
			time.Sleep(time.Second)
		}
		if err := form(here, text); err != nil {
			t.Errorf("a right token after 5 wrong ones: %v", err)
		}
		if err := form(here, "wrong"); !errors.As(err, &many) || many.After != 55*time.Second {
			t.Errorf("try 6: %v", err)
		}
		if err := form(there, text); err != nil {
			t.Errorf("another address: %v", err)
		}
		time.Sleep(55*time.Second - 1)
		if err := form(here, "wrong"); !errors.As(err, &many) || many.After != 1 {
			t.Errorf("a moment before the minute is over: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if err := form(here, text); err != nil {
			t.Errorf("after a minute: %v", err)
		}
		if err := form(here, "wrong"); errors.As(err, &many) {
			t.Errorf("a wrong token after a minute: %v", err)
		}
		if err := form(here, "wrong"); !errors.As(err, &many) || many.After != time.Second {
			t.Errorf("a second one, when four of the first five are younger than a minute: %v", err)
		}

		for i := range 5 {
			if wait := f.wrong(here, false); wait > 0 {
				t.Errorf("bearer try %d must wait for %v", i+1, wait)
			}
		}
		if wait := f.wrong(here, false); wait != time.Minute {
			t.Errorf("bearer try 6 must wait for %v", wait)
		}
		r := request(text)
		r.RemoteAddr = here
		is(t, f, r, token)
		time.Sleep(time.Minute - 1)
		if wait := f.wrong(here, false); wait != 1 {
			t.Errorf("a moment before the minute is over a bearer must wait for %v", wait)
		}
		time.Sleep(time.Nanosecond)
		if wait := f.wrong(here, false); wait > 0 {
			t.Errorf("after a minute a bearer must wait for %v", wait)
		}
	})
}

// Tries are counted by address: with IPv6 by its network, and together for peers without one.
func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1:1", "192.0.2.1:2", true},
		{"192.0.2.1:1", "192.0.2.2:1", false},
		{"192.0.2.1:1", "[::ffff:192.0.2.1]:1", true},
		{"[2001:db8:0:1::1]:1", "[2001:db8:0:1:ffff::2]:1", true},
		{"[2001:db8:0:1::1]:1", "[2001:db8:0:2::1]:1", false},
		{"[fe80::1%eth0]:1", "[fe80::1%eth1]:1", true},
		{"@", "pipe", true},
		{"@", "127.0.0.1:1", false},
	} {
		if got := addressOf(c.a) == addressOf(c.b); got != c.same {
			t.Errorf("%s and %s are one address: %v", c.a, c.b, got)
		}
	}
}

// However many addresses try, a bounded number is remembered, and the latest of them are.
func TestTriesAreBounded(t *testing.T) {
	var all tries
	now := time.Unix(0, 0)
	address := func(i int) netip.Prefix {
		return addressOf(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
	}
	const addresses = 5*triesAddresses + 100
	for i := range addresses {
		for try := range triesMax {
			if wait := all.take(address(i), now); wait != 0 {
				t.Fatalf("address %d waits at try %d for %v", i, try+1, wait)
			}
		}
		if wait := all.take(address(i), now); wait != triesSpan {
			t.Fatalf("address %d may try again: %v", i, wait)
		}
		if n := len(all.young) + len(all.old); n > 2*triesAddresses {
			t.Fatalf("%d addresses are remembered", n)
		}
	}
	for i := addresses - triesAddresses; i < addresses; i++ {
		if wait := all.take(address(i), now); wait == 0 {
			t.Fatalf("address %d, one of the latest, was forgotten", i)
		}
	}
}

// Insecure answers this machine alone, and no request of a proxy on it; its principal may do everything.
func TestInsecure(t *testing.T) {
	from := func(address string, headers ...string) *http.Request {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = address
		for _, h := range headers {
			r.Header.Set(h, "192.0.2.1")
		}
		return r
	}
	for _, r := range []*http.Request{from("127.0.0.1:1"), from("[::1]:1"), from("127.8.8.8:1"), from("[::ffff:127.0.0.1]:1")} {
		p, err := Insecure().Authenticate(r)
		if err != nil || p.Role != Admin || !p.Sees("any") || !p.MayCall("cart", "alice", "add") || p.ID == "" {
			t.Errorf("%s: %+v, %v", r.RemoteAddr, p, err)
		}
	}
	for _, r := range []*http.Request{
		from("192.0.2.1:1"), from("[2001:db8::1]:1"), from("@"), from(""), from("0.0.0.0:1"), from("127.0.0.1"),
		from("127.0.0.1:1", "X-Forwarded-For"), from("127.0.0.1:1", "Forwarded"), from("[::1]:1", "X-Real-Ip"), from("[::1]:1", "Via"),
	} {
		refused(t, Insecure(), r, ErrBadCredentials)
	}
	if (Principal{Role: Admin}).MayCall("cart", "alice", "add") {
		t.Error("an admin without a grant may call")
	}
}
