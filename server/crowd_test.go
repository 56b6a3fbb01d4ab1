package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/memnet"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// crawler is a client that sends a byte each second, or takes nothing of an answer.
type crawler struct {
	begin       string
	drop        string // after begin, each second
	least, most time.Duration
}

// crawl returns when the server has cut the connection, and tells how long that took.
func (k crawler) crawl(c net.Conn) (time.Duration, error) {
	defer c.Close()
	began := time.Now()
	_, err := io.WriteString(c, k.begin)
	for err == nil {
		time.Sleep(time.Second)
		_, err = io.WriteString(c, k.drop)
	}
	if !errors.Is(err, io.ErrClosedPipe) {
		return 0, err
	}
	return time.Since(began), nil
}

// Proves V5: while 2,000 clients send a byte each second or take nothing, with the bounds of production, 64 others get
// each of their answers at once. Each slow client is cut at its bound and not before it, and nothing is left of it.
func TestCrowdOfSlowClients(t *testing.T) {
	const post = "POST /v1/objects/cart/a/call/add HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer all\r\nContent-Length: 100000\r\n\r\n"
	crawlers := map[string]crawler{
		"header": {begin: "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ", drop: "x", least: 5 * time.Second, most: 6 * time.Second},
		// It does not take the answer that tells of the end of its time either.
		"body":   {begin: post, drop: "x", least: 20 * time.Second, most: 22 * time.Second},
		"reader": {begin: "GET /v1/large HTTP/1.1\r\nHost: localhost\r\n\r\n", drop: "xx", least: 138 * time.Second, most: 140 * time.Second},
	}
	slow, callers := many/5, 64
	synctest.Test(t, func(t *testing.T) {
		class := cartClass(newGates())
		host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, Definitions(class)...)
		if err != nil {
			t.Fatal(err)
		}
		config := Config{Auth: people{"all": principal("cart")}}
		exposeCarts(class)(&config)
		srv, err := New(host, config)
		if err != nil {
			t.Fatal(err)
		}
		limit(srv)
		srv.handle(large())
		p := memnet.Listen()
		end := serveOn(p, srv)
		var clients, others sync.WaitGroup
		for name, k := range crawlers {
			for range slow / len(crawlers) {
				c := mustDial(t, p)
				clients.Go(func() {
					if took, err := k.crawl(c); err != nil || took < k.least || took > k.most {
						t.Errorf("V5: %s: cut after %v, want %v to %v: %v", name, took, k.least, k.most, err)
					}
				})
			}
		}
		ctx, stop := context.WithCancel(context.Background())
		for i := range callers {
			c := mustDial(t, p)
			others.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for n := 0; ctx.Err() == nil || n == 0; n++ {
					began := time.Now()
					fmt.Fprintf(c, "POST /v1/objects/cart/%d/call/add HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer all\r\nContent-Length: 1\r\n\r\n1", i)
					a, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Errorf("caller %d: %v", i, err)
						return
					}
					b, err := io.ReadAll(a.Body)
					if took := time.Since(began); err != nil || a.StatusCode != 200 || strings.TrimSpace(string(b)) != fmt.Sprint(n+1) || took > time.Second {
						t.Errorf("V5: caller %d, call %d: %d %s after %v, %v", i, n, a.StatusCode, b, took, err)
						return
					}
					time.Sleep(5 * time.Second)
				}
			})
		}
		clients.Wait()
		stop()
		others.Wait()
		end()
		if err := host.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}) // synctest waits for each goroutine, so none is left
}

// many is how many streams are open at most.
var many = defaultLimits.streams

// bytesInUse is the memory of the heap and of stacks without garbage.
func bytesInUse() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// Of 10,000 streams half leave at once: they leave no goroutine, no listener and no memory, and the others get the next
// event. Proves V9.
func TestCrowdOfStreamsLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, nil, bells)
		n := many
		if testing.Short() {
			n = min(n, 1000)
		}
		f.srv.limits.streamsEach, f.srv.limits.writeTime, f.srv.limits.pingEvery = n, time.Hour, time.Hour
		f.ring("a begin")
		p := memnet.Listen()
		end := serveOn(p, f.srv)
		defer end()
		goroutines, bytes := runtime.NumGoroutine(), bytesInUse()
		open := make([]net.Conn, n)
		for i := range open {
			open[i] = mustDial(t, p)
			fmt.Fprintf(open[i], "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer reader\r\n\r\n",
				[]string{"/v1/events", "/v1/events/bell", "/v1/objects/bell/a/events"}[i%3])
			frameOf(t, open[i], "snapshot")
		}
		all, most := runtime.NumGoroutine(), bytesInUse()
		leave := func(conns []net.Conn, left int) {
			for _, c := range conns {
				_ = c.Close()
			}
			settled(t, "V9: streams are left", func() bool { return f.open() == left })
			share := float64(left) / float64(n)
			settled(t, "V9: goroutines are left", func() bool {
				return runtime.NumGoroutine() <= goroutines+int(share*float64(all-goroutines))+10
			})
			if now := bytesInUse(); now > bytes+(share+0.1)*(most-bytes) {
				t.Errorf("V9: %.0f bytes are in use with %d streams, %.0f with %d, %.0f without", now, left, most, n, bytes)
			}
		}
		leave(open[:n/2], n/2)
		f.ring("a one")
		for _, c := range open[n/2:] {
			frameOf(t, c, "event")
		}
		leave(open[n/2:], 0)
		if taps := f.taps(); taps != 0 {
			t.Errorf("V9: %d taps are left", taps)
		}
		t.Logf("%.0f bytes a stream", (most-bytes)/float64(n))
	})
}

// frameOf reads a stream until a frame of an event has come.
func frameOf(t *testing.T, c net.Conn, event string) {
	t.Helper()
	var text []byte
	for part := make([]byte, 4096); ; {
		n, err := c.Read(part)
		if err != nil {
			t.Fatalf("after %q: %v", text, err)
		}
		text = append(text, part[:n]...)
		if _, after, ok := strings.Cut(string(text), "event: "+event+"\n"); ok && strings.Contains(after, "\n\n\r\n") {
			return
		}
	}
}
