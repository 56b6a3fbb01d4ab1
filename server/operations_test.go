package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
)

// docsHost is a server with the jobs of the document, whose thumbs are dead.
func docsHost(t *testing.T) (*fixture, []object.DeadLetter, *workerpool.Pool[string, int]) {
	t.Helper()
	type city struct {
		City string `json:"city"`
	}
	type image struct {
		Image string `json:"image"`
	}
	report := continuous.New(continuous.Config[city]{Name: "report", StartLater: true, Run: func(context.Context, *continuous.Run[city]) error { return nil }})
	thumb := workerpool.New(workerpool.Config[image, string]{
		Name: "thumb", Work: func(_ context.Context, t *workerpool.Task[image]) (string, error) {
			if t.In.Image == "" {
				return "", object.Permanent(errors.New("connection refused"))
			}
			return "small " + t.In.Image, nil
		},
	})
	printing := workerpool.New(workerpool.Config[string, int]{Name: "print"})
	signal := workflow.NewSignal[bool]("approve")
	order := workflow.New[int, int]("order", workflow.Config{Signals: workflow.Signals{signal}})
	order.Func(func(ctx *workflow.Context, in int) (int, error) {
		_, err := signal.Wait(ctx, 0)
		return in, err
	})
	who := people{"operator": {Role: auth.Operator, Grants: []auth.Grant{{Class: "report"}, {Class: "thumb"}, {Class: "print"}, {Class: "order"}}}}
	f := startOn(t, memory(), func(c *Config) {
		c.Auth, c.Jobs = who, []verbs.Described{report, thumb, printing, order}
	}, report, thumb, printing, order)
	for range 2 {
		ref, err := thumb.Enqueue(t.Context(), f.host, image{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := thumb.Wait(t.Context(), f.host, ref.ID); !errors.Is(err, workerpool.ErrFailed) {
			t.Fatal(err)
		}
		if _, err := printing.Enqueue(t.Context(), f.host, "letter"); err != nil {
			t.Fatal(err)
		}
	}
	page, err := f.host.DeadLetters(t.Context(), object.DeadLettersOptions{})
	if err != nil || len(page.Letters) != 2 {
		t.Fatal(page, err)
	}
	return f, page.Letters, printing
}

// docLines are the lines of the section, with the status after #.
var docLines = regexp.MustCompile(`(?m)^(curl .*?) # (\d{3})\b`)

// Proves V10: each line of docs/OPERATIONS.md that operates jobs by HTTP has the status that stands behind it.
func TestOperateJobsByHTTP(t *testing.T) {
	text, err := os.ReadFile("../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Operate jobs by HTTP\n")
	section, _, _ = strings.Cut(section, "\n## ")
	lines := docLines.FindAllStringSubmatch(section, -1)
	if len(lines) != strings.Count(section, "\ncurl ") || len(lines) < 29 {
		t.Fatalf("%d of %d lines have a status", len(lines), strings.Count(section, "\ncurl "))
	}
	f, dead, printing := docsHost(t)
	env := map[string]string{"URL": f.web.URL, "AUTH": "Authorization: Bearer operator", "SEQ": fmt.Sprint(dead[0].Seq)}
	for _, line := range lines {
		if strings.Contains(line[1], "$LEASE2") {
			claims, err := printing.Claim(t.Context(), f.host, 1, time.Hour)
			if err != nil || len(claims) != 1 {
				t.Fatal(claims, err)
			}
			raw, _ := json.Marshal(claims[0].Lease)
			env["LEASE2"] = string(raw)
		}
		r := curlRequest(t, docWords(t, line[1], env))
		a := f.do(r)
		if fmt.Sprint(a.status) != line[2] {
			t.Errorf("%s: %d: %s", line[1], a.status, a.body)
		}
		keepAnswer(env, r.URL.Path, a.body)
	}
	if !strings.Contains(env["last"], `"done":1,"ended":true`) {
		t.Errorf("the bulk verb: %s", env["last"])
	}
}

// keepAnswer keeps the parts of an answer that a later line needs.
func keepAnswer(env map[string]string, path, body string) {
	var answer struct{ Token string }
	var claims []struct{ Lease json.RawMessage }
	switch {
	case strings.HasSuffix(path, "/claim") && json.Unmarshal([]byte(body), &claims) == nil && len(claims) > 0:
		env["LEASE"] = string(claims[0].Lease)
	case strings.HasSuffix(path, "/heartbeat"):
		env["LEASE"] = strings.TrimSpace(body)
	case path == "/v1/dead:count" && json.Unmarshal([]byte(body), &answer) == nil:
		env["TOKEN"] = answer.Token
	case path == "/v1/dead:run":
		env["last"] = body
		var line struct{ ID string }
		if json.Unmarshal([]byte(body[:strings.IndexByte(body, '\n')+1]), &line) == nil {
			env["RUN"] = line.ID
		}
	}
}

// docWords splits a line as a shell does: by spaces, with quotes and variables.
func docWords(t *testing.T, line string, env map[string]string) (all []string) {
	t.Helper()
	var word strings.Builder
	var quote byte
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == '\'':
			word.WriteByte(c)
		case c == '\\':
			i++
			word.WriteByte(line[i])
		case c == '$':
			name := docVariable.FindString(line[i+1:])
			if _, ok := env[name]; !ok {
				t.Fatalf("%s: nothing has set %s", line, name)
			}
			word.WriteString(env[name])
			i += len(name)
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && c == ' ':
			all = append(all, word.String())
			word.Reset()
		default:
			word.WriteByte(c)
		}
	}
	return append(all, word.String())
}

var docVariable = regexp.MustCompile(`^[A-Z0-9]+`)

// curlRequest makes the request that curl would make.
func curlRequest(t *testing.T, parts []string) *http.Request {
	t.Helper()
	method, target, body, get := "", "", "", false
	header, query := http.Header{}, url.Values{}
	for i := 1; i < len(parts); i++ {
		flag := parts[i]
		if !strings.HasPrefix(flag, "-") {
			target = flag
			continue
		}
		if flag == "-G" {
			get = true
			continue
		}
		i++
		name, value, _ := strings.Cut(parts[i], "=")
		switch flag {
		case "-X":
			method = parts[i]
		case "-d":
			body = parts[i]
			if method == "" {
				method = "POST"
			}
			header.Set("Content-Type", "application/x-www-form-urlencoded") // as curl has it
		case "-H":
			name, value, _ := strings.Cut(parts[i], ": ")
			header.Set(name, value)
		case "--data-urlencode":
			query.Set(name, value)
		default:
			t.Fatalf("%s: the test does not know the flag %s", strings.Join(parts, " "), strconv.Quote(flag))
		}
	}
	if get {
		target += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(t.Context(), method, target, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		r.Body = nil
	}
	r.Header = header
	return r
}
