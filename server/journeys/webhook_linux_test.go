package journeys

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// bookkeeper is another system that wants to know of each deposit. It can be killed and started again.
type bookkeeper struct {
	t        *testing.T
	at       string
	srv      *http.Server
	mu       sync.Mutex
	news     sync.Cond // of mu: there is one more id
	verifier *standard.Webhook
	ids      map[string]map[string]int // by account and balance
	bad      []string
}

func (b *bookkeeper) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed
	}
	var body struct {
		Type string
		Data struct {
			Name string
			Data struct{ Balance int }
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.verifier == nil {
		b.bad = append(b.bad, "it came before the secret was known")
		return
	}
	if err := errors.Join(b.verifier.Verify(raw, r.Header), json.Unmarshal(raw, &body)); err != nil || body.Type != "deposited" {
		b.bad = append(b.bad, fmt.Sprintf("%s: %v", raw, err))
		return
	}
	event := fmt.Sprint(body.Data.Name, " ", body.Data.Data.Balance)
	if b.ids[event] == nil {
		b.ids[event] = map[string]int{}
	}
	b.ids[event][r.Header.Get("webhook-id")]++
	b.news.Broadcast()
}

// start listens, the first time on a port that is free, and then on that one.
func (b *bookkeeper) start() {
	b.t.Helper()
	l, err := net.Listen("tcp", b.at)
	must(b.t, err)
	b.at = l.Addr().String()
	b.srv = &http.Server{Handler: b}
	go func() { _ = b.srv.Serve(l) }()
}

// kill cuts all connections.
func (b *bookkeeper) kill() { _ = b.srv.Close() }

// until waits until it knows of as many deposits as least says, which is asked again after each delivery.
func (b *bookkeeper) until(least func() int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.ids) < least() {
		b.news.Wait()
	}
}

// more waits until it knows of n more deposits.
func (b *bookkeeper) more(n int) {
	b.mu.Lock()
	all := len(b.ids) + n
	b.mu.Unlock()
	b.until(func() int { return all })
}

// customer deposits a cent at a time until it is told to stop, and returns the balance, which is the number of its deposits:
// also if a kill has cut off the answer. It calls rest after each deposit.
func customer(name string, at func() (url, token string), rest func(), stop <-chan struct{}) (balance int) {
	client := &http.Client{}
	for {
		url, token := at()
		r, err := http.NewRequest("POST", url+"/v1/objects/account/"+name+"/call/deposit", strings.NewReader("1"))
		if err != nil {
			panic(err) // the address is right
		}
		r.Header.Set("Authorization", "Bearer "+token)
		a, err := client.Do(r)
		done := false
		if err == nil {
			raw, err := io.ReadAll(a.Body)
			a.Body.Close()
			done = err == nil && a.StatusCode == http.StatusOK && json.Unmarshal(raw, &balance) == nil
		}
		if done {
			rest()
		}
		select {
		case <-stop:
			if done {
				return balance
			}
		default:
		}
	}
}

// Service and receiver are killed in turn under load. Each deposit arrives at least once, always with one webhook-id and a right
// signature. Proves U1, U2, U3.
func TestWebhooksThroughKills(t *testing.T) {
	kills := 6
	if n, err := strconv.Atoi(os.Getenv("HOLDFAST_KILLS")); err == nil {
		kills = n
	}
	dir := t.TempDir() + "/store"
	b := &bookkeeper{t: t, at: "127.0.0.1:0", ids: map[string]map[string]int{}}
	b.news.L = &b.mu
	b.start()
	defer b.kill()
	flags := []string{"-webhook", "http://" + b.at}
	s := start(t, dir, flags...)
	found := regexp.MustCompile(`signatures is (whsec_\S+)`).FindStringSubmatch(s.text)
	if found == nil {
		t.Fatalf("the service said %s", s.text)
	}
	verifier, err := standard.NewWebhook(found[1])
	must(t, err)
	b.mu.Lock()
	b.verifier = verifier
	b.mu.Unlock()

	var mu sync.Mutex // guards s; held while no service runs
	at := func() (url, token string) { mu.Lock(); defer mu.Unlock(); return s.url, s.token }
	stop, counts := make(chan struct{}), make(chan int)
	const customers = 8
	var deposits atomic.Int64
	rest := func() { // so that the deliveries keep pace; some may have failed, and wait
		n := int(deposits.Add(1))
		b.until(func() int {
			select {
			case <-stop:
				return 0
			default:
				return n - 1000
			}
		})
	}
	for i := range customers {
		go func() { counts <- customer(fmt.Sprint("c", i), at, rest, stop) }()
	}
	for i := range kills {
		b.more(50) // so that deliveries are under way
		if i%2 == 1 {
			b.kill()
			b.start()
			continue
		}
		mu.Lock()
		must(t, s.cmd.Process.Kill())
		_ = s.cmd.Wait() // it was killed
		s = start(t, dir, flags...)
		mu.Unlock()
	}
	b.mu.Lock()
	close(stop)
	b.news.Broadcast()
	b.mu.Unlock()
	all := 0
	for range customers {
		all += <-counts
	}
	b.until(func() int { return all })
	b.mu.Lock()
	defer b.mu.Unlock()
	repeated := 0
	for event, ids := range b.ids {
		if len(ids) != 1 {
			t.Errorf("the deposit %s came with the ids %v", event, ids)
		}
		for _, n := range ids {
			repeated += n - 1
		}
	}
	if len(b.ids) != all || len(b.bad) > 0 {
		t.Errorf("%d of %d deposits arrived; refused: %q\n%s", len(b.ids), all, b.bad, s.holdfast(0, "webhook", "ls"))
	}
	t.Logf("%d deposits through %d kills, %d sent again", all, kills, repeated)
	s.stop()
}
