package server

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// raw sends bytes over a connection of its own, and returns all that comes back until the end.
func (f *fixture) raw(text string) string {
	f.t.Helper()
	c, err := net.Dial("tcp", f.web.Listener.Addr().String())
	if err != nil {
		f.t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		f.t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		f.t.Fatal(err)
	}
	b, _ := io.ReadAll(c) // the server may cut the connection
	return string(b)
}

// A request that two readers of HTTP can end at two places, so that one of them takes its body for
// a second request, is refused, and the rest of its connection is not read.
func TestSmuggledRequests(t *testing.T) {
	f := steps(t, nil)
	const hidden = "POST /v1/echo/hidden HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\nContent-Length: 0\r\n\r\n"
	head := func(headers string) string {
		return "POST /v1/echo/seen HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\n" + headers + "\r\n"
	}
	length := fmt.Sprintf("Content-Length: %d\r\n", len(hidden))
	if got := f.raw(head(length) + hidden); !strings.HasPrefix(got, "HTTP/1.1 200") || strings.Count(got, "HTTP/1.1 200") != 1 {
		t.Fatalf("a right request: %q", got)
	}
	if got := f.raw(head("Content-Length: 0\r\n") + hidden); strings.Count(got, "HTTP/1.1 200") != 2 {
		t.Fatalf("two right requests: %q", got)
	}
	for name, text := range map[string]string{
		"two lengths":                   head("Content-Length: 0\r\n"+length) + hidden,
		"two lengths in one header":     head(fmt.Sprintf("Content-Length: 0, %d\r\n", len(hidden))) + hidden,
		"a length with a sign":          head("Content-Length: +0\r\n") + hidden,
		"a length in base 16":           head("Content-Length: 0x0\r\n") + hidden,
		"a space before the colon":      head("Content-Length : 0\r\n") + hidden,
		"chunks in a strange way":       head("Transfer-Encoding: xchunked\r\n") + hidden,
		"chunks and another encoding":   head("Transfer-Encoding: chunked, identity\r\n") + "0\r\n\r\n" + hidden,
		"chunks after another encoding": head("Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n" + hidden,
		"chunks twice":                  head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n" + hidden,
		"chunks with a form feed":       head("Transfer-Encoding: \x0bchunked\r\n") + "0\r\n\r\n" + hidden,
		"a chunk of a bad size":         head("Transfer-Encoding: chunked\r\n") + "-0\r\n\r\n" + hidden,
		"a chunk that is too short":     head("Transfer-Encoding: chunked\r\n") + "1\r\nxx\r\n0\r\n\r\n" + hidden,
		"two hosts":                     head("Host: localhost\r\nContent-Length: 0\r\n") + hidden,
		"no host":                       strings.Replace(head("Content-Length: 0\r\n"), "Host: localhost\r\n", "", 1) + hidden,
		"a NUL in a header":             head("X: a\x00b\r\nContent-Length: 0\r\n") + hidden,
		"a name with a line end":        head("X\rY: a\r\nContent-Length: 0\r\n") + hidden,
		"a header without a colon":      head("X\r\nContent-Length: 0\r\n") + hidden,
		"a version of the future":       strings.Replace(head("Content-Length: 0\r\n"), "HTTP/1.1", "HTTP/3.0", 1) + hidden,
		"a target with a space":         strings.Replace(head("Content-Length: 0\r\n"), "seen", "se en", 1) + hidden,
	} {
		got := f.raw(text)
		if !strings.HasPrefix(got, "HTTP/1.1 4") && !strings.HasPrefix(got, "HTTP/1.1 5") || strings.Contains(got, "HTTP/1.1 200") || strings.Contains(got, "hidden") {
			t.Errorf("%s: %q", name, got)
		}
	}
	for host, status := range map[string]string{"localhost": "200", "evil.example": "421"} {
		text := strings.Replace(head("Content-Length: 0\r\nConnection: close\r\n"), " /v1", " http://"+host+"/v1", 1)
		if got := f.raw(text); !strings.HasPrefix(got, "HTTP/1.1 "+status) {
			t.Errorf("a target of %s beside the header Host: %q", host, got)
		}
	}
}

// A name in the path is the name of the object, and no path: no way to write it leads to another
// route, and one that a proxy may change is refused.
func TestNamesInPathsAreNoPaths(t *testing.T) {
	f := steps(t, nil)
	for target, want := range map[string]string{
		"/v1/echo/a%2Fb": `"a/b"`, "/v1/echo/a%2F%2E%2E%2Fb": `"a/../b"`, "/v1/echo/a%252Fb": `"a%2Fb"`, "/v1/echo/a;b": `"a;b"`, "/v1/echo/a%3Bb": `"a;b"`,
		"/v1/echo/%2E%2E": "", "/v1/echo/..": "", "/v1/echo/a/..": "", "/v1/echo/a/../b": "", "/v1/echo//a": "", "//v1/echo/a": "", "/v1/./echo/a": "",
		"/v1/echo/a/": "", "/v1/echo/%": "", "/v1/echo/%zz": "", "/v1/echo/a\\..\\b": `"a\\..\\b"`, "*": "", "/v1%2Fecho/a": "", "/V1/echo/a": "",
	} {
		got := f.raw("POST " + target + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		if want == "" && !strings.HasPrefix(got, "HTTP/1.1 4") || want != "" && (!strings.HasPrefix(got, "HTTP/1.1 200") || !strings.Contains(got, "\r\n["+want+",")) {
			t.Errorf("%s: %q, want %s", target, got, want)
		}
	}
}
