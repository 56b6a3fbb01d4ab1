package server

import (
	"errors"
	"strings"
	"testing"
)

// Proves V12: no token and no cookie stands in the lines of requests that fail, however the request brings it.
func TestLinesOfErrorsHaveNoSecrets(t *testing.T) {
	f, _, _, text := signing(t, nil)
	f.srv.handle(route{method: "POST", pattern: "/v1/fails", access: viewer, handle: func(*exchange) error { return errors.New("a failure") }})
	f.srv.handle(route{method: "POST", pattern: "/v1/panics", access: viewer, handle: func(*exchange) error { panic("a panic") }})
	c := f.ask("", "POST", "/signin", "token="+text, "Content-Type", asForm).cookie(t)
	session := []string{"Cookie", c.Name + "=" + c.Value}
	for _, path := range []string{"/v1/fails", "/v1/panics"} {
		if a := f.ask(text, "POST", path, text); a.status != 500 || strings.Contains(a.body, text) {
			t.Errorf("%s with a token: %d %s", path, a.status, a.body)
		}
		if a := f.ask("", "POST", path, c.Value, session...); a.status != 500 || strings.Contains(a.body, c.Value) {
			t.Errorf("%s with a cookie: %d %s", path, a.status, a.body)
		}
		for _, bad := range []string{path + "?token=" + text, path + "/" + text} {
			if a := f.ask(text, "POST", bad, ""); a.status/100 != 4 {
				t.Errorf("%s: %d %s", bad, a.status, a.body)
			}
		}
	}
	log := f.log.String()
	if strings.Count(log, "level=ERROR") != 4 || !strings.Contains(log, "a failure") || !strings.Contains(log, "a panic") {
		t.Errorf("the lines are:\n%s", log)
	}
	if strings.Contains(log, text) || strings.Contains(log, c.Value) {
		t.Errorf("a token or a cookie stands in the log:\n%s", log)
	}
}
