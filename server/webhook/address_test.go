package webhook_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/holdfast-dev/holdfast/internal/testing/memnet"
	"github.com/holdfast-dev/holdfast/server/webhook"
)

// rebinding is a resolver with a name server of the test. Its answers come one after another.
func rebinding(t *testing.T, answers ...string) *net.Resolver {
	t.Helper()
	var n atomic.Int64
	serve := func(conn net.Conn) {
		defer conn.Close()
		for {
			b, size := make([]byte, 4096), make([]byte, 2) // before each message, as in DNS over TCP
			if _, err := io.ReadFull(conn, size); err != nil {
				return
			}
			b = b[:binary.BigEndian.Uint16(size)]
			if _, err := io.ReadFull(conn, b); err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b) != nil || len(m.Questions) != 1 {
				return
			}
			m.Response, m.Additionals = true, nil
			q := m.Questions[0]
			ip := net.ParseIP(answers[min(int(n.Load()), len(answers)-1)])
			h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
			switch four := ip.To4(); {
			case q.Type == dnsmessage.TypeA && four != nil:
				m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: [4]byte(four)}}}
				n.Add(1)
			case q.Type == dnsmessage.TypeAAAA && four == nil:
				m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AAAAResource{AAAA: [16]byte(ip)}}}
				n.Add(1)
			}
			out, err := m.Pack()
			if err != nil {
				return
			}
			if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)); err != nil {
				return
			}
		}
	}
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go serve(theirs)
		return timeless{ours}, nil
	}}
}

// timeless is a connection without deadlines, because the resolver gives up after 5 s.
type timeless struct{ net.Conn }

func (timeless) SetDeadline(time.Time) error { return nil }

// long is a timeout that no test waits for.
const long = 24 * time.Hour

// No request goes to an address that is not public, also if a name resolves to one only when the connection is made. Proves U5.
func TestAddresses(t *testing.T) {
	c := webhook.Config{Timeout: long, Concurrency: 1}
	for _, ip := range []string{
		"0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.8.8.8", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1",
		"192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.9", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "fc00::1", "fdff::1", "fe80::1", "ff02::1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2001:db8::1", "2001::1", "2002:7f00:1::1", "3fff::1", "100::1",
	} {
		if err := webhook.CheckConnection(ip); err == nil || !strings.Contains(err.Error(), "not public") {
			t.Fatalf("%s: %v", ip, err)
		}
		if _, _, _, err := webhook.Send(t.Context(), c, rebinding(t, ip), "https://hook.example.com/"); err == nil || !strings.Contains(err.Error(), "not public") {
			t.Fatalf("%s: %v", ip, err)
		}
		if net.ParseIP(ip).To4() != nil { // the same within an address of IPv6
			if _, _, _, err := webhook.Send(t.Context(), c, net.DefaultResolver, "https://[::ffff:"+ip+"]/"); err == nil || !strings.Contains(err.Error(), "not public") {
				t.Errorf("::ffff:%s: %v", ip, err)
			}
		}
	}
	if _, _, _, err := webhook.Send(t.Context(), c, rebinding(t, "192.0.2.1"), "https://hook.example.com:8443/"); err == nil || !strings.Contains(err.Error(), "port") {
		t.Errorf("port 8443: %v", err)
	}
	for _, ip := range []string{"8.8.8.8", "172.32.0.1", "172.15.0.1", "100.63.255.255", "100.128.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.255", "9.255.255.255", "11.0.0.0", "2606:4700::1", "2a00::1"} {
		if err := webhook.CheckConnection(ip); err != nil {
			t.Errorf("%s: %v", ip, err)
		}
	}
}

// A name that is public at first and private later gets no request, though the URL was taken. Proves U5.
func TestRebinding(t *testing.T) {
	var asked atomic.Int64
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inner.Close()
	port := inner.URL[strings.LastIndex(inner.URL, ":")+1:]
	resolver := rebinding(t, "127.0.0.1")
	private := webhook.Config{Timeout: long, Concurrency: 1, AllowPrivate: true}
	if status, _, _, err := webhook.Send(t.Context(), private, resolver, "http://hook.example.com:"+port); err != nil || status != http.StatusOK {
		t.Fatalf("with AllowPrivate: %d, %v", status, err) // so the name server works
	}
	private.AllowPrivate = false
	if _, _, _, err := webhook.Send(t.Context(), private, resolver, "http://hook.example.com:"+port); err == nil {
		t.Error("the request was sent")
	}
	if asked.Load() != 1 {
		t.Errorf("the inner server got %d requests, want 1", asked.Load())
	}
}

// A redirect is not followed, an answer without end costs 4 KiB, and a slow one its time. No proxy of the environment is asked. Proves U5.
func TestHostileReceiver(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	synctest.Test(t, func(t *testing.T) {
		var followed atomic.Int64
		release := make(chan struct{})
		mux := http.NewServeMux()
		mux.HandleFunc("/302", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/followed", http.StatusFound) })
		mux.HandleFunc("/followed", func(http.ResponseWriter, *http.Request) { followed.Add(1) })
		mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
			b := make([]byte, 64<<10)
			for i := range b {
				b[i] = 0xff
			}
			for r.Context().Err() == nil {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		})
		mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		})
		mux.HandleFunc("/later", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		})
		mux.HandleFunc("/date", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", "Tue, 24 Nov 2026 12:00:00 GMT")
			w.Header().Set("Retry-After", "Tue, 24 Nov 2026 12:01:30 GMT")
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		s := memnet.NewServer(mux)
		defer s.Close()
		defer close(release)
		c := webhook.Config{Timeout: 15 * time.Second, Concurrency: 1, AllowPrivate: true}
		for _, want := range []struct {
			path   string
			status int
			after  time.Duration
			err    string
		}{
			{path: "/302", status: 302}, {path: "/endless", status: 200}, {path: "/slow", err: "no answer within 15s"},
			{path: "/later", status: 429, after: 2 * time.Minute}, {path: "/date", status: 503, after: 90 * time.Second},
		} {
			began := time.Now()
			status, text, after, err := webhook.Send(t.Context(), c, nil, s.URL+want.path)
			if status != want.status || after != want.after || len(text) > 3<<10 || (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
				t.Errorf("%s: status %d, Retry-After %v, %d bytes, %v", want.path, status, after, len(text), err)
			}
			if took := time.Since(began); err == nil && took != 0 || err != nil && took != c.Timeout {
				t.Errorf("%s took %v", want.path, took)
			}
		}
		if followed.Load() != 0 {
			t.Error("the redirect was followed")
		}
	})
}
