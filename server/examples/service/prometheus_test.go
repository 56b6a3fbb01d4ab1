package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/outside"
)

// A Prometheus server scrapes the service with its token, and evaluates each alert of the
// repository without an error. Of those that wake somebody up none fires, but for those that tell of
// the machine on which the test runs.
func TestPrometheusScrapesTheService(t *testing.T) {
	program := outside.Prometheus(t, "prometheus")
	rules, err := filepath.Abs("../../../ops/prometheus/holdfast.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	address, token := startService(t)
	p := startPrometheus(t, program, fmt.Sprintf(`
global: {scrape_interval: 10s, scrape_timeout: 10s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: service
    authorization: {credentials: %q}
    static_configs: [{targets: [%q]}]
`, rules, token, address))
	p.until("holdfast_up is 1", "/api/v1/query?query="+url.QueryEscape("holdfast_up == 1 and on (instance) holdfast_turns_total"), func(b []byte) bool {
		var a struct{ Data struct{ Result []any } }
		return json.Unmarshal(b, &a) == nil && len(a.Data.Result) == 1
	})
	machine := regexp.MustCompile(`^Holdfast(NoSpace|DiskHangs)$`)
	want := len(regexp.MustCompile(`(?m)^ +- alert: `).FindAll(text, -1))
	p.until("each rule is evaluated", "/api/v1/rules", func(b []byte) bool {
		evaluated := 0
		for _, r := range p.rules(b) {
			switch {
			case r.Health == "err":
				t.Fatalf("%s: %s", r.Name, r.LastError)
			case r.State == "firing" && r.Labels["severity"] == "page" && !machine.MatchString(r.Name):
				t.Fatalf("%s fires", r.Name)
			case r.Health == "ok":
				evaluated++
			}
		}
		return evaluated == want
	})
}

// startService starts the service, and returns its address and a token.
func startService(t *testing.T) (address, token string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	cmd := child("-addr", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the end of the service: %v", err)
		}
	})
	lines, said := bufio.NewReader(out), ""
	for !strings.Contains(said, "Ctrl-C") {
		line, err := lines.ReadString('\n')
		if said += line; err != nil {
			t.Fatalf("the program said %s", said)
		}
	}
	at := curled.FindStringSubmatch(said)
	if at == nil {
		t.Fatalf("the program said %s", said)
	}
	u, err := url.Parse(at[3] + at[4])
	if err != nil || u.Host == "" {
		t.Fatalf("the address is %q, %v", at[3]+at[4], err)
	}
	return u.Host, strings.TrimPrefix(at[1], "Bearer ")
}

// monitor is a Prometheus server.
type monitor struct {
	t      *testing.T
	base   string
	output bytes.Buffer  // read it once ended is closed
	ended  chan struct{} // closed when the process has ended
}

// startPrometheus starts one on a free port of the loopback. It cannot tell the port that it would
// choose, so the test chooses one, and another if it was taken meanwhile.
func startPrometheus(t *testing.T, program, config string) *monitor {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	said := ""
	for try := range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		prefix := fmt.Sprintf("/of-%d-%d", os.Getpid(), try) // the server of another test is never taken for this one
		m := &monitor{t: t, base: "http://" + address + prefix, ended: make(chan struct{})}
		cmd := exec.Command(program, "--config.file="+file, "--web.listen-address="+address, "--web.route-prefix="+prefix,
			fmt.Sprintf("--storage.tsdb.path=%s/data%d", dir, try), "--log.level=warn")
		cmd.Stdout, cmd.Stderr = &m.output, &m.output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			_ = cmd.Wait() // the test ends it, or shows its output
			close(m.ended)
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-m.ended
		})
		if m.begins() {
			return m
		}
		_ = cmd.Process.Kill()
		<-m.ended
		said = m.output.String()
	}
	t.Fatalf("prometheus does not start:\n%s", said)
	return nil
}

// begins waits until the server is ready, and returns false if it has ended before.
func (m *monitor) begins() bool {
	for m.alive() {
		if status, _ := m.get("/-/ready"); status == http.StatusOK {
			return true
		}
	}
	return false
}

// alive waits for a moment, because a server tells no other program that it has changed, and reports
// whether the process runs.
func (m *monitor) alive() bool {
	select {
	case <-m.ended:
		return false
	case <-time.After(50 * time.Millisecond):
		return true
	}
}

// get returns the status of an answer, or 0, and its body.
func (m *monitor) get(path string) (int, []byte) {
	a, err := http.Get(m.base + path)
	if err != nil {
		return 0, nil
	}
	defer a.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(a.Body); err != nil {
		return 0, nil
	}
	return a.StatusCode, b.Bytes()
}

// until asks for a path until the answer is the right one.
func (m *monitor) until(text, path string, right func([]byte) bool) {
	m.t.Helper()
	for m.alive() {
		if status, b := m.get(path); status == http.StatusOK && right(b) {
			return
		}
	}
	m.t.Fatalf("prometheus has ended before %s:\n%s", text, &m.output)
}

// rule is an alert as the server has evaluated it.
type rule struct {
	Name, Health, State, LastError string
	Labels                         map[string]string
}

// rules decodes an answer of /api/v1/rules.
func (m *monitor) rules(b []byte) (all []rule) {
	m.t.Helper()
	var a struct {
		Data struct{ Groups []struct{ Rules []rule } }
	}
	if err := json.Unmarshal(b, &a); err != nil {
		m.t.Fatal(err)
	}
	for _, g := range a.Data.Groups {
		all = append(all, g.Rules...)
	}
	return all
}
