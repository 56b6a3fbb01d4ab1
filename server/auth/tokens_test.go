package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/seam"
)

// fixture is a file of tokens with a log, on the virtual time of a bubble.
type fixture struct {
	*TokenFile
	t    *testing.T
	path string
	log  *loglines.Recorder

	mu      sync.Mutex
	cookies []string // the values of all that were given
}

// inBubble runs a test on a file that does not exist yet, in virtual time. At the end no token
// and no cookie that the test has made stands in a line of the log.
func inBubble(t *testing.T, fn func(f *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{t: t, path: filepath.Join(t.TempDir(), "tokens.json"), log: &loglines.Recorder{}}
		f.TokenFile = f.open(Options{Create: true})
		fn(f)
		if err := f.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		f.clean(f.log.Text(slog.LevelDebug))
	})
}

// open opens the file as another process does.
func (f *fixture) open(o Options) *TokenFile {
	f.t.Helper()
	o.Logger = f.log.Logger()
	tokens, err := Tokens(f.path, o)
	if err != nil {
		f.t.Fatal(err)
	}
	return tokens
}

// add makes a token.
func (f *fixture) add(t Token) (Token, string) {
	f.t.Helper()
	added, text, err := f.Add(t)
	if err != nil {
		f.t.Fatal(err)
	}
	return added, text
}

// clean checks that a text has no token, no cookie and no hash.
func (f *fixture) clean(text string) {
	f.t.Helper()
	if tokenText.MatchString(text) {
		f.t.Errorf("a token stands in %q", text)
	}
	for _, c := range f.cookies {
		if strings.Contains(text, c) {
			f.t.Errorf("a cookie stands in %q", text)
		}
	}
	for _, k := range f.view.Load().known {
		if hex, _ := k.SHA256.MarshalText(); strings.Contains(text, string(hex)) {
			f.t.Errorf("a hash stands in %q", text)
		}
	}
}

// edit changes the file by hand. Its time is long ago, so that only its size and its inode tell of
// the change.
func (f *fixture) edit(content string) {
	f.t.Helper()
	next := f.path + ".next"
	old := time.Now().Add(-time.Hour)
	err := errors.Join(os.WriteFile(next, []byte(content), 0o600), os.Chtimes(next, old, old), os.Rename(next, f.path))
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) content() string {
	f.t.Helper()
	data, err := os.ReadFile(f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(data)
}

// request is one with a bearer token, from an address.
func request(token string) *http.Request {
	r := httptest.NewRequest("GET", "/v1/jobs", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// is checks that an Authenticator takes a request as one of a token.
func is(t *testing.T, a Authenticator, r *http.Request, want Token) {
	t.Helper()
	p, err := a.Authenticate(r)
	if err != nil || p.ID != want.ID || p.Name != want.Name || p.Role != want.Role {
		t.Errorf("the request is one of %+v, want the token %+v: %v", p, want, err)
	}
}

// refused checks that an Authenticator refuses a request.
func refused(t *testing.T, a Authenticator, r *http.Request, want error) {
	t.Helper()
	if p, err := a.Authenticate(r); !errors.Is(err, want) || p.ID != "" || p.Role != None {
		t.Errorf("the request is one of %+v, %v; want %v", p, err, want)
	}
}

// A token is accepted as a bearer token with all that it may do, and in no other place of a
// request.
func TestTokenIsAccepted(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ci", Role: Operator, Prefix: "acme/", Grants: []Grant{{Class: "cart", Prefix: "acme/", Names: []string{"add"}}}})
		other, otherText := f.add(Token{Name: "board", Role: Viewer})
		is(t, f, request(text), token)
		is(t, f, request(otherText), other)
		p, err := f.Authenticate(request(text))
		if err != nil || !p.Sees("acme/1") || p.Sees("acme2/1") || !p.MayCall("cart", "acme/1", "add") || p.MayCall("cart", "acme/1", "clear") || p.MayCall("cart", "other/1", "add") {
			t.Errorf("the principal is %+v, %v", p, err)
		}
		for name, r := range map[string]*http.Request{
			"nothing":      httptest.NewRequest("GET", "/", nil),
			"in the URL":   httptest.NewRequest("GET", "/?token="+text+"&access_token="+text, nil),
			"in a form":    httptest.NewRequest("POST", "/", strings.NewReader("token="+text)),
			"other scheme": httptest.NewRequest("GET", "/", nil),
		} {
			if name == "other scheme" {
				r.Header.Set("Authorization", "Basic "+text)
			}
			if _, err := f.Authenticate(r); !errors.Is(err, ErrNoCredentials) {
				t.Errorf("%s: %v", name, err)
			}
		}
		twice := request(text)
		twice.Header.Add("Authorization", "Bearer "+text)
		refused(t, f, twice, ErrBadCredentials)
		lower := httptest.NewRequest("GET", "/", nil)
		lower.Header.Set("Authorization", "bearer  "+text)
		is(t, f, lower, token)
	})
}

// Wrong tokens are refused, also those that have the ID of a right one; the error does not tell
// which part is wrong, and does not repeat the token.
func TestWrongTokens(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ci", Role: Admin})
		_, otherText := f.add(Token{Name: "board", Role: Viewer})
		secret := text[strings.LastIndex(text, "_")+1:]
		for i, wrong := range []string{
			"", "x", tokenPrefix, tokenPrefix + token.ID, tokenPrefix + token.ID + "_", tokenPrefix + token.ID + "_" + secret[1:],
			text + "0", text[:len(text)-1], strings.ToUpper(text), tokenPrefix + "_" + secret,
			tokenPrefix + token.ID + otherText[strings.LastIndex(otherText, "_"):],
		} {
			r := request(wrong)
			r.RemoteAddr = fmt.Sprintf("10.0.0.%d:1", i)
			_, err := f.Authenticate(r)
			if !errors.Is(err, ErrBadCredentials) || err.Error() != "auth: bad credentials: the token is wrong, revoked or expired" {
				t.Errorf("%q: %v", wrong, err)
			}
		}
		is(t, f, request(text), token)
	})
}

// Proves V12: nothing of a token can be found in the file; two tokens differ in their ids and secrets.
func TestFileHasNoTokens(t *testing.T) {
	inBubble(t, func(f *fixture) {
		_, a := f.add(Token{Name: "a", Role: Viewer})
		_, b := f.add(Token{Name: "b", Role: Viewer})
		for _, text := range []string{a, b} {
			if secret := text[strings.LastIndex(text, "_")+1:]; strings.Contains(f.content(), secret) || len(secret) != 64 {
				t.Errorf("the secret %q stands in the file", secret)
			}
		}
		if a[:30] == b[:30] || a[30:] == b[30:] {
			t.Errorf("two tokens are alike: %s, %s", a, b)
		}
		info, err := os.Stat(f.path)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("the file has the mode %v: %v", info.Mode(), err)
		}
		left, err := os.ReadDir(filepath.Dir(f.path))
		if err != nil || len(left) != 1 {
			t.Errorf("beside the file there are %v: %v", left, err)
		}
	})
}

// Proves V12: a token that another process revokes is refused 4 s after the last look, and not before the
// file is looked at again. The process that revokes it refuses it at once.
func TestRevoked(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ci", Role: Admin})
		kept, keptText := f.add(Token{Name: "kept", Role: Viewer})
		other := f.open(Options{})
		time.Sleep(lookEvery)
		is(t, other, request(text), token) // a look
		if err := f.Revoke(token.ID); err != nil {
			t.Fatal(err)
		}
		refused(t, f, request(text), ErrBadCredentials)
		time.Sleep(4*time.Second - 1)
		is(t, other, request(text), token)
		time.Sleep(time.Nanosecond)
		refused(t, other, request(text), ErrBadCredentials)
		is(t, other, request(keptText), kept)
		if err := f.Revoke(token.ID); !errors.Is(err, ErrNoToken) || strings.Contains(err.Error(), "\n") {
			t.Errorf("a second Revoke: %v", err)
		}
		if err := f.Revoke(keptText); !errors.Is(err, ErrNoToken) {
			t.Errorf("Revoke of a text: %v", err)
		} else {
			f.clean(err.Error())
		}
		if got := other.List(); len(got) != 1 || got[0].ID != kept.ID {
			t.Errorf("the list is %+v", got)
		}
	})
}

// Proves V12: while one request looks at the file, the others go on with the tokens that were read last, and
// wait for the look when these are 5 s old.
func TestRequestsBesideALook(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ci", Role: Admin})
		other := f.open(Options{})
		time.Sleep(lookEvery)
		is(t, other, request(text), token) // a look
		if err := f.Revoke(token.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5*time.Second - 1)
		other.looks.Lock() // a look that does not end
		is(t, other, request(text), token)
		time.Sleep(time.Nanosecond)
		ended := make(chan error, 1)
		go func() {
			_, err := other.Authenticate(request(text))
			ended <- err
		}()
		for range 1000 {
			runtime.Gosched() // to a request that does not wait
		}
		other.looks.Unlock()
		if err := <-ended; !errors.Is(err, ErrBadCredentials) {
			t.Errorf("after 5 s the revoked token gets %v", err)
		}
	})
}

// Proves V12: a token is accepted until the moment before it expires.
func TestExpires(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ci", Role: Viewer, Expires: time.Now().Add(time.Hour)})
		time.Sleep(time.Hour - 1)
		is(t, f, request(text), token)
		if who, err := f.Find(token.ID); err != nil || who.ID != token.ID || who.Role != Viewer {
			t.Errorf("Find of a token that has not expired: %+v, %v", who, err)
		}
		time.Sleep(time.Nanosecond)
		refused(t, f, request(text), ErrBadCredentials)
		if who, err := f.Find(token.ID); !errors.Is(err, ErrBadCredentials) {
			t.Errorf("Find of a token that has expired: %+v, %v", who, err)
		}
		if got := f.List(); len(got) != 1 {
			t.Errorf("the expired token is not listed: %v", got)
		}
		for _, at := range []time.Time{time.Now(), time.Now().Add(-time.Hour)} {
			if _, _, err := f.Add(Token{Name: "old", Role: Viewer, Expires: at}); err == nil || !strings.Contains(err.Error(), "not in the future") {
				t.Errorf("Add of a token that expires at %v: %v", at, err)
			}
		}
		f.add(Token{Name: "short", Role: Viewer, Expires: time.Now().Add(time.Second)})
	})
}

// Proves V12: a half-written file changes nothing and logs one line; a whole one counts again, and a removed
// one revokes all.
func TestFileThatCannotBeRead(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ci", Role: Viewer})
		whole := f.content()
		errorLines := func() int { return len(f.log.From(slog.LevelWarn)) }
		for lines, broken := range []string{whole[:len(whole)/2], strings.Replace(whole, `"name"`, `"nam"`, 1), "", whole + whole} {
			f.edit(broken)
			for range 3 { // the tokens that were read last are valid for as long as it takes
				time.Sleep(lookEvery)
				is(t, f, request(text), token)
			}
			if n := errorLines(); n != lines+1 {
				t.Errorf("%d log lines after the broken file %d:\n%s", n, lines, f.log.Text(slog.LevelDebug))
			}
			if _, err := Tokens(f.path, Options{}); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), f.path) {
				t.Errorf("an open of the broken file %d: %v", lines, err)
			}
			if _, _, err := f.Add(Token{Name: "b", Role: Viewer}); err == nil {
				t.Error("Add to a broken file has written it")
			}
		}
		f.edit(whole)
		time.Sleep(lookEvery)
		is(t, f, request(text), token)
		f.edit(whole + whole) // the error that was told last
		lines := errorLines()
		time.Sleep(lookEvery)
		is(t, f, request(text), token)
		if errorLines() != lines+1 {
			t.Errorf("a file that was good meanwhile is not told again:\n%s", f.log.Text(slog.LevelDebug))
		}
		f.edit(whole)
		time.Sleep(lookEvery)
		is(t, f, request(text), token)
		synctest.Wait() // the last uses are being stored
		n := errorLines()
		if err := os.Remove(f.path); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			time.Sleep(lookEvery)
			refused(t, f, request(text), ErrBadCredentials)
		}
		if errorLines() != n+1 || !strings.Contains(f.log.Text(slog.LevelError), "all tokens are revoked") {
			t.Errorf("the log of a file that is gone:\n%s", f.log.Text(slog.LevelDebug))
		}
		f.edit(whole)
		time.Sleep(lookEvery)
		is(t, f, request(text), token)
	})
}

// A change is seen by the time of the file alone, by its size alone and by its inode alone; a file that was
// changed just before it was read is read again.
func TestChangesAreSeen(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "aaaa", Role: Viewer})
		see := func(how string) {
			t.Helper()
			time.Sleep(lookEvery)
			if p, err := f.Authenticate(request(text)); err != nil || p.Name != token.Name {
				t.Errorf("%s: the name is %q, want %q: %v", how, p.Name, token.Name, err)
			}
		}
		rename := func(to string) string {
			content := strings.Replace(f.content(), token.Name, to, 1)
			token.Name = to
			return content
		}
		overwrite := func(content string, at time.Time) { // in place
			if err := errors.Join(os.WriteFile(f.path, []byte(content), 0o600), os.Chtimes(f.path, at, at)); err != nil {
				t.Fatal(err)
			}
		}
		past := time.Now().Add(-time.Hour).Truncate(time.Second)
		overwrite(f.content(), past)
		see("nothing")
		overwrite(rename("bbbb"), past.Add(time.Nanosecond*1000))
		see("the time")
		overwrite(rename("ccccc"), past.Add(time.Nanosecond*1000))
		see("the size")
		f.edit(rename("ddddd"))
		if at := past.Add(time.Nanosecond * 1000); os.Chtimes(f.path, at, at) != nil {
			t.Fatal("the time of the file cannot be set")
		}
		see("the inode")
		if f.view.Load().stamp.fresh {
			t.Error("a file of an hour ago counts as fresh")
		}
		now := time.Now().Add(lookEvery)
		overwrite(rename("eeeee"), now)
		see("the time")
		overwrite(rename("fffff"), now) // in the same step of the file system's time
		see("a fresh file")
	})
}

// The file must be a regular one that its owner alone can read and write.
func TestModeOfTheFile(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ci", Role: Viewer})
		for _, mode := range []fs.FileMode{0o600, 0o400, 0o700} {
			if err := os.Chmod(f.path, mode); err != nil {
				t.Fatal(err)
			}
			if _, err := Tokens(f.path, Options{}); err != nil {
				t.Errorf("mode %o: %v", mode, err)
			}
		}
		for _, mode := range []fs.FileMode{0o640, 0o620, 0o604, 0o602, 0o610} {
			if err := os.Chmod(f.path, mode); err != nil {
				t.Fatal(err)
			}
			if _, err := Tokens(f.path, Options{}); err == nil || !strings.Contains(err.Error(), "make it 0600") {
				t.Errorf("mode %o: %v", mode, err)
			}
		}
		old := time.Now().Add(-time.Hour)
		if err := errors.Join(os.Chmod(f.path, 0o600), os.Chtimes(f.path, old, old)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookEvery)
		is(t, f, request(text), token)
		if err := os.Chmod(f.path, 0o644); err != nil { // which changes neither the time nor the size
			t.Fatal(err)
		}
		time.Sleep(lookEvery)
		is(t, f, request(text), token) // of the last good file
		if n := len(f.log.From(slog.LevelError)); n != 1 {
			t.Errorf("%d lines in the log", n)
		}
	})
	dir := t.TempDir()
	if _, err := Tokens(dir, Options{}); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a directory: %v", err)
	}
	_, err := Tokens(filepath.Join(dir, "none"), Options{})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "holdfast token add") {
		t.Errorf("no file: %v", err)
	}
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, []byte(`{"version":1,"tokens":[]}`+strings.Repeat(" ", maxFileBytes-25)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Tokens(large, Options{}); err != nil {
		t.Errorf("a file of %d bytes: %v", maxFileBytes, err)
	}
	if err := os.WriteFile(large, []byte(`{"version":1,"tokens":[]}`+strings.Repeat(" ", maxFileBytes-24)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Tokens(large, Options{}); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a file of %d bytes: %v", maxFileBytes+1, err)
	}
}

// A link to the file stays a link when the file is changed.
func TestLinkStays(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ci", Role: Viewer})
		link := filepath.Join(t.TempDir(), "link.json")
		if err := os.Symlink(f.path, link); err != nil {
			t.Fatal(err)
		}
		linked, err := Tokens(link, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := linked.Add(Token{Name: "b", Role: Viewer}); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("the link is %v: %v", info, err)
		}
		is(t, linked, request(text), token)
		time.Sleep(lookEvery)
		if got := f.List(); len(got) != 2 {
			t.Errorf("the list is %v", got)
		}
	})
}

// A prefix that does not end in the separator is refused when a token is added and when the file is
// read, in one line that names the token; so are other rows that are none.
func TestTokensThatAreNone(t *testing.T) {
	inBubble(t, func(f *fixture) {
		for text, token := range map[string]Token{
			`the prefix "acme" does not end in "/"`:                         {Name: "ci", Prefix: "acme"},
			`the prefix "acme" of the grant for class cart does not end in`: {Name: "ci", Grants: []Grant{{Class: "cart", Prefix: "acme/"}, {Class: "cart", Prefix: "acme"}}},
			`a grant is for class ""`:                                       {Name: "ci", Grants: []Grant{{}}},
			`a grant is for class "cart/acme"`:                              {Name: "ci", Grants: []Grant{{Class: "cart/acme"}}},
			`the grant for class cart has an empty name`:                    {Name: "ci", Grants: []Grant{{Class: "cart", Names: []string{"add", ""}}}},
			`the name must have 1`:                                          {Name: ""},
			`the name must have 1 to 200 bytes`:                             {Name: strings.Repeat("x", 201)},
			`without control characters`:                                    {Name: "a\nb"},
			`there is no role 9`:                                            {Name: "ci", Role: 9},
		} {
			_, _, err := f.Add(token)
			if err == nil || !strings.Contains(err.Error(), text) || !errors.Is(err, ErrBadToken) || !strings.HasPrefix(err.Error(), fmt.Sprintf("auth: bad token %q: ", token.Name)) || strings.Contains(err.Error(), "\n") {
				t.Errorf("want %q: %v", text, err)
			}
		}
		if _, err := os.Stat(f.path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file was made: %v", err)
		}
		other, _ := f.add(Token{Name: strings.Repeat("x", 200)})
		token, text := f.add(Token{Name: "ci", Role: Viewer, Prefix: "acme/", Grants: []Grant{{Class: "cart", Prefix: "acme/"}}})
		whole := f.content()
		for want, change := range map[string][2]string{
			fmt.Sprintf(`token %s ("ci"): the prefix "acme" does not end`, token.ID):                {`"role": "viewer",` + "\n" + `      "prefix": "acme/"`, `"role": "viewer",` + "\n" + `      "prefix": "acme"`},
			fmt.Sprintf(`token %s ("ci"): the prefix "acme" of the grant for class cart`, token.ID): {`"class": "cart",` + "\n" + `          "prefix": "acme/"`, `"class": "cart",` + "\n" + `          "prefix": "acme"`},
			`unknown field "expire"`:           {`"created"`, `"expire"`},
			`no role "root"`:                   {`"viewer"`, `"root"`},
			`no role "` + tokenPrefix + `..."`: {`"viewer"`, `"` + text + `"`},
			`the version is 2`:                 {`"version": 1`, `"version": 2`},
			`the sha256 is missing`:            {`"sha256": "` + hexOf(f, token.ID), `"sha256": "` + strings.Repeat("0", 64)},
			`64 hexadecimal digits`:            {`"sha256": "`, `"sha256": "0`},
			`the id is not one`:                {token.ID, token.ID + "a"},
		} {
			broken := strings.Replace(whole, change[0], change[1], 1)
			if broken == whole {
				t.Fatalf("%q is not in %s", change[0], whole)
			}
			f.edit(broken)
			_, err := Tokens(f.path, Options{})
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("want %q: %v", want, err)
			} else {
				f.clean(err.Error())
			}
		}
		f.edit(strings.Replace(whole, other.ID, token.ID, 1))
		if _, err := Tokens(f.path, Options{}); err == nil || !strings.Contains(err.Error(), "the id is there twice") {
			t.Errorf("two rows of one ID: %v", err)
		}
		f.edit(strings.ReplaceAll(whole, "acme/", "acme."))
		if _, err := Tokens(f.path, Options{Separator: "."}); err != nil {
			t.Errorf("another separator: %v", err)
		}
		f.edit(whole)
		if _, err := Tokens(f.path, Options{Separator: "."}); err == nil {
			t.Error("prefixes with a slash pass as prefixes with a full stop")
		}
	})
}

// Processes that add and revoke tokens at the same time lose no change.
func TestChangesAreNotLost(t *testing.T) {
	inBubble(t, func(f *fixture) {
		first, _ := f.add(Token{Name: "first", Role: Viewer})
		const processes, each = 3, 6
		var wg sync.WaitGroup
		for p := range processes {
			other := f.open(Options{})
			wg.Go(func() {
				for i := range each {
					added, text, err := other.Add(Token{Name: fmt.Sprintf("%d/%d", p, i), Role: Viewer})
					if err != nil {
						t.Errorf("Add: %v", err)
						return
					}
					if _, err := other.Authenticate(request(text)); err != nil {
						t.Errorf("a token that was just added: %v", err)
					}
					if i%2 == 1 {
						err = other.Revoke(added.ID)
					}
					if err != nil {
						t.Errorf("Revoke: %v", err)
					}
				}
				if err := other.Close(); err != nil { // stores the last uses
					t.Errorf("Close: %v", err)
				}
			})
		}
		wg.Wait()
		var want, got []string
		for p := range processes {
			for i := 0; i < each; i += 2 {
				want = append(want, fmt.Sprintf("%d/%d", p, i))
			}
		}
		for _, t := range f.open(Options{}).List() {
			if got = append(got, t.Name); t.LastUse.IsZero() && t.ID != first.ID {
				f.t.Errorf("token %s has no last use", t.Name)
			}
		}
		slices.Sort(got)
		if want = append(want, "first"); !slices.Equal(got, want) {
			t.Errorf("the tokens are %q, want %q", got, want)
		}
	})
}

// A change waits 5 s for another process that has the lock, and then says so. A request does not
// wait for it, and the last uses are stored when the lock is free.
func TestLockOfAnotherProcess(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ci", Role: Viewer})
		unlock, err := tryLock(f.path)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, _, err := f.Add(Token{Name: "b", Role: Viewer}); err == nil || !strings.Contains(err.Error(), "another process changes it") || time.Since(began) != 5*time.Second {
			t.Errorf("Add under the lock of another has ended after %v: %v", time.Since(began), err)
		}
		began = time.Now()
		is(t, f, request(text), token)
		if time.Since(began) != 0 {
			t.Errorf("a request has waited for %v", time.Since(began))
		}
		time.Sleep(usesEvery)
		synctest.Wait()
		if strings.Contains(f.content(), "lastUse") {
			t.Error("the file was written under the lock of another")
		}
		time.AfterFunc(lockWait-1, func() { unlock() })
		if _, _, err := f.Add(Token{Name: "b", Role: Viewer}); err != nil {
			t.Errorf("Add while another gives the lock up: %v", err)
		}
		time.Sleep(usesEvery)
		synctest.Wait()
		if !strings.Contains(f.content(), "lastUse") {
			t.Errorf("the last use is not stored:\n%s", f.content())
		}
	})
}

// A change that an editor makes, without the lock, while a process changes the file is not
// undone: the process begins again, and the last uses are stored later.
func TestEditorBesideAChange(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.add(Token{Name: "ci", Role: Viewer})
		f.add(Token{Name: "b", Role: Viewer})
		s, read, err := readFile(f.path, "/", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range []func(){
			func() { f.edit(`{"version": 1, "tokens": []}`) },
			func() { os.Remove(f.path) },
		} {
			change()
			if err := writeFile(f.path, s, read); !errors.Is(err, errChanged) {
				t.Errorf("a write over the change of an editor: %v", err)
			}
		}
		f.edit(`{"version": 1, "tokens": []}`)
		if err := writeFile(f.path, s, stamp{}); !errors.Is(err, errChanged) {
			t.Errorf("a write of a file that was absent: %v", err)
		}
		restored := func() {
			if err := errors.Join(os.Remove(f.path), writeFile(f.path, s, stamp{})); err != nil {
				t.Fatal(err)
			}
		}
		restored()
		calls := 0
		edited := func(s *stored) error { // the editor is as quick as the first tries
			if calls++; calls < rewrites {
				restored()
			}
			s.Tokens = s.Tokens[:1]
			return nil
		}
		if err := f.change(edited); err != nil || calls != rewrites {
			t.Errorf("a change beside an editor took %d tries: %v", calls, err)
		}
		calls = -1
		if err := f.change(edited); !errors.Is(err, errChanged) || calls != rewrites-1 {
			t.Errorf("a change beside an editor that is always quicker took %d tries: %v", calls+1, err)
		}
		if left, err := os.ReadDir(filepath.Dir(f.path)); err != nil || len(left) != 1 {
			t.Errorf("beside the file there are %v: %v", left, err)
		}
	})
}

// A crash in the middle of a write leaves the file as it was, and a part of the new one beside it, which
// the next write replaces.
func TestCrashInAWrite(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ci", Role: Viewer})
		part := f.content()[:20]
		if err := os.WriteFile(f.path+".new", []byte(part), 0o644); err != nil {
			t.Fatal(err)
		}
		is(t, f.open(Options{}), request(text), token)
		f.add(Token{Name: "b", Role: Viewer})
		if got := f.open(Options{}).List(); len(got) != 2 {
			t.Errorf("the list is %v", got)
		}
		info, err := os.Stat(f.path)
		left, also := os.ReadDir(filepath.Dir(f.path))
		if err != nil || also != nil || info.Mode() != 0o600 || len(left) != 1 {
			t.Errorf("the mode is %v, and there are %v: %v, %v", info.Mode(), left, err, also)
		}
	})
}

// Requests beside changes of the file see each token as valid until it is revoked, and never after. Beside
// the requests of other goroutines a process sees a change within unseen.
func TestRequestsBesideChanges(t *testing.T) {
	inBubble(t, func(f *fixture) {
		kept, keptText := f.add(Token{Name: "kept", Role: Viewer})
		other := f.open(Options{})
		done := make(chan struct{})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(time.Second):
						is(t, f, request(keptText), kept)
						_, c := f.signIn(keptText, false)
						is(t, f, with(c), kept)
						is(t, other, request(keptText), kept)
					}
				}
			})
		}
		for range 20 {
			token, text := f.add(Token{Name: "ci", Role: Viewer})
			is(t, f, request(text), token)
			time.Sleep(unseen)
			is(t, other, request(text), token)
			if err := f.Revoke(token.ID); err != nil {
				t.Error(err)
			}
			r := request(text)
			r.RemoteAddr = token.ID
			if _, err := f.Authenticate(r); err == nil {
				t.Error("the revoked token is accepted")
			}
			time.Sleep(unseen)
			if _, err := other.Authenticate(r); err == nil {
				t.Error("the revoked token is accepted by the other process")
			}
		}
		close(done)
		wg.Wait()
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	})
}

// lateClock has timers that cannot be stopped and run their functions when write is closed.
type lateClock struct{ write chan struct{} }

func (c lateClock) Now() time.Time { return time.Now() }

func (c lateClock) AfterFunc(_ time.Duration, f func()) seam.Timer {
	go func() {
		<-c.write
		f()
	}()
	return rung{}
}

type rung struct{}

func (rung) Stop() bool { return false }

// The last use is stored a minute after the first use, with one write for all uses of that minute,
// and by Close. A use that cannot be stored is told once, and costs no request anything.
func TestLastUse(t *testing.T) {
	inBubble(t, func(f *fixture) {
		token, text := f.add(Token{Name: "ci", Role: Viewer})
		inode := func() fs.FileInfo {
			info, err := os.Stat(f.path)
			if err != nil {
				t.Fatal(err)
			}
			return info
		}
		before := inode()
		used := func() time.Time { return f.open(Options{}).List()[0].LastUse }
		began := time.Now()
		is(t, f, request(text), token)
		time.Sleep(time.Minute - time.Second)
		for range 100 {
			is(t, f, request(text), token)
		}
		last := time.Now()
		if !os.SameFile(before, inode()) || !used().IsZero() || f.List()[0].LastUse != last.UTC() {
			t.Errorf("within a minute the file was written, or the use is not in the list: %v", f.List())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !used().Equal(last) || time.Since(began) != time.Minute {
			t.Errorf("after a minute the last use is %v, want %v", used(), last)
		}
		written := inode()
		time.Sleep(10 * usesEvery)
		synctest.Wait()
		if !os.SameFile(written, inode()) {
			t.Error("the file was written without a use")
		}
		is(t, f, request(text), token)
		if err := f.Close(); err != nil || !used().Equal(time.Now().Truncate(time.Second)) {
			t.Errorf("after Close the last use is %v: %v", used(), err)
		}
	})
	inBubble(t, func(f *fixture) { // Close waits for a write that is under way, and may be called again
		token, text := f.add(Token{Name: "ci", Role: Viewer})
		late := lateClock{make(chan struct{})}
		other := f.open(Options{Seams: seam.Seams{Clock: late}})
		is(t, other, request(text), token)
		closed := make(chan error, 1)
		go func() { closed <- other.Close() }()
		synctest.Wait()
		if len(closed) > 0 {
			t.Error("Close has not waited")
		}
		close(late.write)
		if err := <-closed; err != nil || !strings.Contains(f.content(), "lastUse") {
			t.Errorf("Close: %v\n%s", err, f.content())
		}
		is(t, other, request(text), token)
		if err := other.Close(); err != nil {
			t.Errorf("a second Close: %v", err)
		}
	})
	inBubble(t, func(f *fixture) { // a use that another process has stored is not written again
		token, text := f.add(Token{Name: "ci", Role: Viewer})
		other := f.open(Options{})
		is(t, f, request(text), token)
		is(t, other, request(text), token)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		written, err := os.Stat(f.path)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(f.path); err != nil || !os.SameFile(written, info) || !strings.Contains(f.content(), "lastUse") {
			t.Errorf("the file was written twice: %v\n%s", err, f.content())
		}
	})
	inBubble(t, func(f *fixture) {
		token, _ := f.add(Token{Name: "ci", Role: Viewer})
		k := f.view.Load().known[token.ID]
		if err := os.RemoveAll(filepath.Dir(f.path)); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if p := f.accept(k); p.ID != token.ID {
				t.Errorf("the request is one of %+v", p)
			}
			time.Sleep(usesEvery)
			synctest.Wait()
		}
		if text := f.log.Text(slog.LevelWarn); strings.Count(text, "the last uses of tokens cannot be stored") != 1 {
			t.Errorf("the log:\n%s", text)
		}
	})
}
