package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/server/internal/patience"
)

// The environment of a child tells it to be the program.
const childEnv = "SERVICE_TEST_CHILD"

func TestMain(m *testing.M) {
	patience.Have()
	if os.Getenv(childEnv) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	return cmd
}

// curled finds the parts of the lines that the program prints to try. An address with a question mark is
// quoted, because it is a pattern of files in some shells.
var curled = regexp.MustCompile(`(?m)^  curl -H 'Authorization: (Bearer \S+)' (?:(-d \S+|-N) )?(?:'(http://\S+\?\S+)'|(http://[^\s?']+))$`)

// The program runs, each of the lines that it prints works, SIGINT ends it in order, and a
// second process finds the store.
func TestService(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	for _, balance := range []int{250, 500} {
		cmd := child("-addr", "127.0.0.1:0", "-dir", dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, text := bufio.NewReader(out), ""
		for !strings.Contains(text, "Ctrl-C") {
			line, err := lines.ReadString('\n')
			if text += line; err != nil {
				t.Fatalf("the program said %s\n%s", text, &stderr)
			}
		}
		first := regexp.MustCompile(`at (http://\S+/ui), and sign in with the token (\S+), or try`).FindStringSubmatch(text)
		if first == nil {
			t.Fatalf("the program said %s", text)
		}
		page(t, first[1], first[2])
		tries := curled.FindAllStringSubmatch(text, -1)
		if len(tries) != 3 {
			t.Fatalf("the program said %s", text)
		}
		for i, try := range tries {
			if got := curl(t, try[1], try[2], try[3]+try[4]); i == 0 && got != fmt.Sprint(balance) {
				t.Errorf("the balance is %s, want %d", got, balance)
			}
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(lines)
		if err := errors.Join(err, cmd.Wait()); err != nil {
			t.Fatalf("the end: %v\n%s", err, &stderr)
		}
		if string(rest) != "The service has ended in order.\n" {
			t.Errorf("at its end the program said %q", rest)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// curl does as the line of curl does, and returns the answer, or the first event of a stream.
func curl(t *testing.T, token, option, url string) string {
	t.Helper()
	method, body := "GET", ""
	if data, ok := strings.CutPrefix(option, "-d "); ok {
		method, body = "POST", data
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", token)
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded") // as curl does
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if a.StatusCode != 200 {
		b, _ := io.ReadAll(a.Body) // for the message alone
		t.Fatalf("%s: %d %s", url, a.StatusCode, b)
	}
	if option == "-N" {
		return event(t, a.Body)
	}
	b, err := io.ReadAll(a.Body)
	if err != nil || !json.Valid(b) {
		t.Fatalf("%s: %q, %v", url, b, err)
	}
	return strings.TrimSpace(string(b))
}

// page signs in as a browser does, and wants the first page.
func page(t *testing.T, address, token string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	form, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer form.Body.Close()
	a, err := browser.PostForm(address+"/signin", url.Values{"token": {token}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil || form.StatusCode != 200 || a.Request.URL.Path != "/ui/overview" || !strings.Contains(string(b), "What needs attention") {
		t.Fatalf("%s shows %d, and after the sign-in %s %s, %v", address, form.StatusCode, a.Request.URL, b, err)
	}
}

// event waits for an event of the load.
func event(t *testing.T, stream io.Reader) string {
	t.Helper()
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "event: event\n" {
			return line
		}
	}
}

func TestCommandLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		args string
		code int
		want string // a part of its message
	}{
		{"-h", 0, "Usage:"},
		{"-wat", 2, "Usage:"},
		{"now", 2, "service: unexpected argument \"now\" (-h helps)\n"},
		{"-addr " + taken.Addr().String(), 1, "address already in use\n"},
		{"-addr 0.0.0.0:0", 1, "set Config.TLS"},
		{"-dir main_test.go", 1, "main_test.go"},
	} {
		t.Setenv("TMPDIR", t.TempDir())
		out, err := child(strings.Fields(c.args)...).CombinedOutput()
		code := 0
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			code = exit.ExitCode()
		}
		if code != c.code || !strings.Contains(string(out), c.want) || c.code == 1 && !strings.HasPrefix(string(out), "service: ") {
			t.Errorf("%s: exit code %d, %s", c.args, code, out)
		}
		if lines := strings.Count(string(out), "\n"); c.code == 1 && lines != 1 {
			t.Errorf("%s: %d lines: %s", c.args, lines, out)
		}
		if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v, %v", c.args, left, err)
		}
		if left, err := filepath.Glob("*.webhook-key"); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v, %v", c.args, left, err)
		}
	}
}
