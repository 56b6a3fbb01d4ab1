// Package dashboard writes the pages of the server: HTML for an operator's browser.
//
// It stands on values alone: package server reads the host, leaves out the values that the principal may
// not see, and gives each page its struct. So no page can show more than the API.
//
// # How it works
//
// A page is a struct that implements Page, and a template of the same name in the folder page.
// Each template defines "main", and one template "part-x" for each part with the id x that a
// browser fetches anew while the page is live. Write writes the page in its frame, or one part.
//
// # Guarantees
//
//   - All text of users is escaped for its place by html/template.
//   - Each address comes from the function link, which puts names into the query, so no name
//     makes another address of it.
//   - No page has inline script or style, so the Content-Security-Policy CSP holds.
//   - Reading works without script.
package dashboard

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"path"
	"strings"
	"time"
)

// CSP is the Content-Security-Policy of a page.
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Page is one page: a struct of this package.
type Page interface {
	// page returns the name of the template and the title.
	page() (name, title string)
}

// Frame is the part of a page that all pages have.
type Frame struct {
	Now      time.Time // the page tells when it was made
	Self     Link      // the page itself, with its filters
	Who      string    // the principal; empty before a sign-in
	Role     string    // of the principal
	Lists    bool      // the principal may see lists, and not only single objects
	Bulk     bool      // the principal may see verbs over many
	Audit    bool      // the principal may see the audit
	Backups  bool      // there are backups, and the principal may see them
	Webhooks bool      // there are webhooks, and the principal may see them
	SignOut  bool      // there is a session to end
	Part     string    // the only part to write; empty: the whole page
}

// ErrNoPart says that a page has no part with the name in Frame.Part.
var ErrNoPart = errors.New("dashboard: the page has no such part")

// view is the data of a template.
type view struct {
	Frame
	Title string
	Page  Page
}

//go:embed page/*.html
var pages embed.FS

// templates has a set of templates for each page: those of the frame, and those of its file.
var templates = parse()

// shared are the files whose templates each page may use.
var shared = []string{"page/frame.html", "page/shared.html"}

func parse() map[string]*template.Template {
	base := template.Must(template.New("").Funcs(functions).Option("missingkey=error").ParseFS(pages, shared...))
	files, err := pages.ReadDir("page")
	if err != nil {
		panic(err) // the files are part of the program
	}
	all := make(map[string]*template.Template)
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".html")
		all[name] = template.Must(template.Must(base.Clone()).ParseFS(pages, path.Join("page", f.Name())))
	}
	return all
}

// Write writes a page, or the part of it that the frame names. It returns ErrNoPart if there
// is no such part.
func Write(w io.Writer, f Frame, p Page) error {
	name, title := p.page()
	set, start := templates[name], "frame"
	if set == nil {
		return fmt.Errorf("dashboard: there is no template %q", name)
	}
	if f.Part != "" {
		if start = "part-" + f.Part; set.Lookup(start) == nil {
			return ErrNoPart
		}
	}
	var b bytes.Buffer // a page that fails is not written in part
	if err := set.ExecuteTemplate(&b, start, view{f, title, p}); err != nil {
		return fmt.Errorf("dashboard: %s: %w", name, err)
	}
	_, err := w.Write(b.Bytes())
	return err
}
