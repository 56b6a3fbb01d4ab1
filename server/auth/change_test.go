package auth_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/server/auth"
)

// Proves V20: a change of another process is told once, at the next look, with the ids of the tokens alone. A file that
// is written anew without a change, and one that stores the uses of tokens, tell nothing.
func TestOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "tokens.json")
		open := func() *auth.TokenFile {
			f, err := auth.Tokens(path, auth.Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			return f
		}
		mine, other := open(), open()
		var told []string
		mine.OnChange(func(c auth.Change) { told = append(told, fmt.Sprint(c.Added, c.Edited, c.Revoked)) })
		look := func(want ...string) {
			t.Helper()
			time.Sleep(5 * time.Second)
			mine.List()
			if !slices.Equal(told, want) {
				t.Errorf("V20: told %q, want %q", told, want)
			}
			told = nil
		}
		look()
		ann, text, err := other.Add(auth.Token{Name: "ann", Role: auth.Viewer})
		if err != nil {
			t.Fatal(err)
		}
		look(fmt.Sprintf("[%s] [] []", ann.ID))
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+text)
		if _, err := other.Authenticate(r); err != nil {
			t.Fatal(err)
		}
		if err := other.Close(); err != nil { // stores the use
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(raw), "lastUse") {
			t.Fatalf("%v: %s", err, raw)
		}
		look()
		write := func(raw string) {
			t.Helper()
			if err := os.WriteFile(path, []byte(raw), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(string(raw) + "\n") // an editor
		look()
		write(strings.Replace(string(raw), `"viewer"`, `"admin"`, 1))
		look(fmt.Sprintf("[] [%s] []", ann.ID))
		if err := other.Revoke(ann.ID); err != nil {
			t.Fatal(err)
		}
		look(fmt.Sprintf("[] [] [%s]", ann.ID))
		bob, _, err := mine.Add(auth.Token{Name: "bob", Role: auth.Viewer, Grants: []auth.Grant{}}) // the file has no such list
		if err != nil {
			t.Fatal(err)
		}
		look(fmt.Sprintf("[%s] [] []", bob.ID))
	})
}
