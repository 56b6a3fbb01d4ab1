package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves V14, V17: any name comes back the same from the store over the path, the query, the list, the page and the command
// line. On the page it is no markup, and no control byte of it reaches the terminal.
func FuzzNames(f *testing.F) {
	class, _ := cartClass(object.ClassOptions{})
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, server.Definitions(class)...)
	if err != nil {
		f.Fatal(err)
	}
	srv, err := server.New(host, server.Config{Auth: auth.Insecure(), Objects: []server.Exposed{server.Class(class)}})
	if err != nil {
		f.Fatal(err)
	}
	web := httptest.NewServer(srv)
	f.Cleanup(func() {
		web.Close()
		_ = host.Shutdown(f.Context())
	})
	ask := func(t testing.TB, method, at, body string) (status int, answer string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, web.URL+at, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		a, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		b, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(b)
	}
	for counted := false; !counted; runtime.Gosched() { // a page says meanwhile that labels are being counted
		_, counted = host.Labels("cart")
	}
	const call = `{"class": "cart", "name": "plain", "method": "put", "argument": {"Key": "k"}}`
	if status, body := ask(f, http.MethodPost, "/v1/call", call); status != http.StatusOK {
		f.Fatalf("the call: %d %s", status, body)
	}
	_, plainDelete := ask(f, http.MethodGet, "/ui/delete?class=cart&name=plain", "")
	_, plainList := ask(f, http.MethodGet, "/ui/objects?class=cart", "")
	if status, body := ask(f, http.MethodDelete, "/v1/object?class=cart&name=plain", ""); status != http.StatusNoContent {
		f.Fatalf("the delete: %d %s", status, body)
	}
	for _, name := range []string{hostile, ".", "..", "/", "//", "a/b", "a?b#c;d", "%2F%2e%2e", "\x00", "\x7f", "\u0085", "\u009b2J", "\u202eevil", "<script>alert(1)</script>", `"onload='x'`, "\xff", "", "ü", "{{.}}", "${x}", "-rf", "\ufffd"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		query := "class=cart&name=" + url.QueryEscape(name)
		if (storage.ID{Class: "cart", Name: name}).Validate() != nil {
			if status, body := ask(t, http.MethodGet, "/v1/object?"+query, ""); status != http.StatusBadRequest {
				t.Errorf("a name that no object can have: %d %s", status, body)
			}
			return
		}
		call, err := json.Marshal(map[string]any{"class": "cart", "name": name, "method": "put", "argument": order{Key: "k", Value: "v"}})
		if err != nil {
			t.Fatal(err)
		}
		if status, body := ask(t, http.MethodPost, "/v1/call", string(call)); status != http.StatusOK {
			t.Fatalf("the call: %d %s", status, body)
		}
		named := func(what, raw string) {
			t.Helper()
			var o struct{ ID storage.ID }
			if err := json.Unmarshal([]byte(raw), &o); err != nil || o.ID.Name != name {
				t.Errorf("%s has %q in place of %q: %v", what, o.ID.Name, name, err)
			}
		}
		_, body := ask(t, http.MethodGet, "/v1/object?"+query, "")
		named("the query", body)
		if name != "." && name != ".." && name != "/" {
			_, body = ask(t, http.MethodGet, "/v1/objects/cart/"+url.PathEscape(name), "")
			named("the path", body)
		}
		_, body = ask(t, http.MethodGet, "/v1/objects/cart?limit=1&prefix="+url.QueryEscape(name), "")
		var list struct{ Objects []json.RawMessage }
		if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Objects) != 1 {
			t.Fatalf("the list: %v: %s", err, body)
		}
		named("the list", string(list.Objects[0]))
		for page, plain := range map[string]string{"/ui/delete?" + query: plainDelete, "/ui/objects?class=cart": plainList} {
			_, body := ask(t, http.MethodGet, page, "")
			for _, mark := range []string{"<", ">", `"`} {
				if strings.Count(body, mark) != strings.Count(plain, mark) {
					t.Errorf("%s: the name has a %s on the page: %s", page, mark, body)
				}
			}
			if strings.ContainsFunc(body, control) {
				t.Errorf("%s: a control byte is on the page: %q", page, body)
			}
		}
		for _, args := range [][]string{{"inspect", "cart/" + name}, {"ls", "cart", "--limit", "1000"}} {
			shown := run(t, Program{}, append([]string{"--addr", web.URL}, args...)...)
			if shown.code != Fine || strings.ContainsFunc(shown.out+shown.errs, control) {
				t.Errorf("%q: exit %d: %q", args, shown.code, shown.out+shown.errs)
			}
		}
		asJSON := run(t, Program{}, "--addr", web.URL, "-o", "json", "inspect", "cart/"+name)
		named("the command line", asJSON.out)
		if bytes.ContainsFunc([]byte(asJSON.out), control) {
			t.Errorf("a control byte is in %q", asJSON.out)
		}
		if status, body := ask(t, http.MethodDelete, "/v1/object?"+query, ""); status != http.StatusNoContent {
			t.Errorf("the delete: %d %s", status, body)
		}
	})
}

// control reports whether a character moves the cursor of a terminal or changes what follows, but for the end of a line.
func control(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
