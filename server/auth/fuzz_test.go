package auth

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A file of tokens, however it is written, is refused in one line without a token in it, or each of its
// tokens keeps the rules and it can be written and read again.
func FuzzTokensFile(f *testing.F) {
	const text = "holdfast_aaaaaaaaaaaaaaaa_0000000000000000000000000000000000000000000000000000000000000000"
	good := &stored{Version: formatVersion, Tokens: []row{
		{Token{ID: "aaaaaaaaaaaaaaaa", Name: "ci", Role: Reader, Prefix: "acme/", Created: time.Unix(1, 0).UTC(), Expires: time.Unix(9, 0).UTC(), LastUse: time.Unix(2, 0).UTC(),
			Grants: []Grant{{Class: "cart", Prefix: "acme/", Names: []string{"add"}}}}, hashOf(text)},
		{Token{ID: "bbbbbbbbbbbbbbbb", Name: "é", Created: time.Unix(1, 0).UTC()}, hashOf("b")},
	}}
	data, err := encode(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte(`{"version":1,"tokens":null}`))
	f.Add([]byte(`{"version":1,"tokens":[{}]}`))
	f.Add([]byte(`{"` + text + `":1}`))
	f.Add(bytes.Replace(data, []byte("reader"), []byte(text), 1))
	f.Add(bytes.Replace(data, []byte("acme/"), []byte("acme"), 1))
	f.Add(bytes.Repeat([]byte("["), 20_000))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decode(data, "/")
		if err != nil {
			if line := redacted(err); strings.Contains(line, "\n") || tokenText.MatchString(line) {
				t.Errorf("the error is %q", line)
			}
			return
		}
		for _, r := range s.Tokens {
			if unended(r.Prefix, "/") || r.Name == "" || r.SHA256 == (hash{}) || r.Role > Admin {
				t.Errorf("accepted %+v", r)
			}
			for _, g := range r.Grants {
				if unended(g.Prefix, "/") || g.Class == "" {
					t.Errorf("accepted the grant %+v", g)
				}
			}
		}
		once, err := encode(s)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := decode(once, "/")
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if twice, err := encode(again); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("written twice, the file differs: %v\n%s\n%s", err, once, twice)
		}
	})
}

// No value of a cookie is a session but those that SignIn has made.
func FuzzCookie(f *testing.F) {
	tokens, err := Tokens(filepath.Join(f.TempDir(), "tokens.json"), Options{Create: true})
	if err != nil {
		f.Fatal(err)
	}
	added, text, err := tokens.Add(Token{Name: "ann", Role: Admin})
	if err != nil {
		f.Fatal(err)
	}
	real, err := tokens.seal(plainCookie, session{ends: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), sum: hashOf(text), id: added.ID})
	if err != nil {
		f.Fatal(err)
	}
	if tokens.sessionOf(plainCookie, real) == nil {
		f.Fatal("the session is none")
	}
	f.Add(real)
	f.Add(real + "=")
	f.Add(real[:5] + "\n" + real[5:])
	f.Add(real[:len(real)-2])
	f.Add("")
	f.Add(strings.Repeat("A", sealedMax+4))
	f.Fuzz(func(t *testing.T, value string) {
		if k := tokens.sessionOf(plainCookie, value); (k != nil) != (value == real) {
			t.Errorf("%q is the session of %v", value, k)
		}
		if tokens.sessionOf(secureCookie, value) != nil {
			t.Errorf("%q is a session under another name", value)
		}
	})
}
