package dashboard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var (
	// attribute finds the beginning of an attribute: its name, up to the quote of its value.
	attribute = regexp.MustCompile(`[\s"']([a-zA-Z][\w:.-]*)\s*=\s*(["'])`)
	unquoted  = regexp.MustCompile(`<[a-zA-Z][^<>]*=[^<>]*>`)
	quoted    = regexp.MustCompile(`=\s*(?:"[^"]*"|'[^']*')`)
	linked    = regexp.MustCompile(`^\{\{link [^{}]*\}\}$`)
	action    = regexp.MustCompile(`\{\{[^{}]*\}\}`)
	scripted  = regexp.MustCompile(`(?i)<script(?: defer)?(?: src="\{\{link [^{}]*\}\}")?></script>`)
)

// templateProblems are the places of a template where text of a user could become an address or code.
func templateProblems(name, text string) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, name+": "+fmt.Sprintf(format, args...)) }
	for _, m := range attribute.FindAllStringSubmatchIndex(text, -1) {
		attr, value := strings.ToLower(text[m[2]:m[3]]), valueOf(text[m[1]:], text[m[4]])
		address := strings.HasPrefix(attr, "hx-") || attr == "href" || attr == "src" || attr == "action" || attr == "formaction" || attr == "data-live"
		switch {
		case attr == "style", strings.HasPrefix(attr, "on"), strings.HasPrefix(attr, "hx-on"), attr == "hx-vals", attr == "hx-vars", attr == "srcdoc":
			add("has the attribute %s, which is code", attr)
		case attr == "hx-trigger" && value != "stale":
			add("has the trigger %q: the script of the page alone triggers", value)
		case address && strings.Contains(value, "{{") && !linked.MatchString(value):
			add("has %s=%q: an address is {{link …}} and nothing else", attr, value)
		case address && (strings.Contains(value, "js:") || strings.Contains(value, "javascript:") || strings.Contains(value, "//")):
			add("has %s=%q, which is code or another site", attr, value)
		}
	}
	plain := quoted.ReplaceAllString(action.ReplaceAllString(text, "x"), "")
	if m := unquoted.FindString(plain); m != "" {
		add("has an attribute without quotes: %s", m)
	}
	if rest := scripted.ReplaceAllString(text, ""); strings.Contains(strings.ToLower(rest), "<script") || strings.Contains(strings.ToLower(rest), "<style") {
		add("has inline script or style")
	}
	return problems
}

// valueOf is the text up to a quote that is not in an action of the template.
func valueOf(text string, quote byte) string {
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], "{{"):
			end := strings.Index(text[i:], "}}")
			if end < 0 {
				return text
			}
			i += end + 1
		case text[i] == quote:
			return text[:i]
		}
	}
	return text
}

// Proves V14: no template makes an address or code of text of a user.
func TestTemplatesMakeAddressesByLinkAlone(t *testing.T) {
	entries, err := pages.ReadDir("page")
	if err != nil || len(entries) < 5 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		text, err := pages.ReadFile("page/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range templateProblems(e.Name(), string(text)) {
			t.Error(p)
		}
	}
}

// The check above finds each mistake, and nothing in a template that is right.
func TestTemplateProblemsAreSeen(t *testing.T) {
	for _, bad := range []string{
		`<a href="{{.Name}}">`, `<a href='x?{{link "a"}}'>`, `<b hx-get="{{link "a"}}{{.X}}">`, `<form action="/{{.X}}">`, `<a HREF="{{.X}}">`,
		`<b style="x">`, `<b onclick="x">`, `<b hx-on:click="x">`, `<b hx-trigger="click[x]">`, `<b hx-trigger="{{link "x"}}">`,
		`<a href="javascript:x">`, `<b hx-vals="js:x">`, `<a href={{.X}}>`, `<b class={{.X}} id=y>`, `<script>x</script>`, `<style>x</style>`, `<img src="https://x">`,
	} {
		if got := templateProblems("x", bad); len(got) == 0 {
			t.Errorf("nothing is wrong with %s", bad)
		}
	}
	const good = `<a href="{{link .Self "after" .Page.Next}}" title="{{.Name}}" hx-get="{{link "x" "y" (z .A)}}" hx-trigger="stale"{{if .X}} aria-current="page"{{end}}>=</a><script defer src="{{link "a"}}"></script>`
	if got := templateProblems("x", good); len(got) > 0 {
		t.Error(got)
	}
}

// htmx is the file of the package htmx.org@4.0.1 of npm, dist/htmx.min.js.
func TestHtmxIsTheReleasedFile(t *testing.T) {
	a, ok := FindAsset("htmx-4.0.1.min.js")
	sum := sha256.Sum256(a.Body)
	if got := hex.EncodeToString(sum[:]); !ok || got != "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130" {
		t.Errorf("the file has the SHA-256 %s", got)
	}
	if _, ok := FindAsset("htmx-LICENSE.txt"); !ok {
		t.Error("its licence is missing")
	}
}

// The scripts of the pages stay short enough to be read at once.
func TestScriptsAreShort(t *testing.T) {
	for _, name := range []string{"page.js", "zone.js"} {
		a, _ := FindAsset(name)
		if n := strings.Count(string(a.Body), "\n"); n == 0 || n > 200 {
			t.Errorf("%s has %d lines, and 200 at most are allowed", name, n)
		}
	}
}
