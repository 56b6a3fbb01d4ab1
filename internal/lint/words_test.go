package lint

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// prose is the language of one room: the comments of its code, or a document.
type prose struct {
	words   int
	riddles map[string]int // by the names of figures, see riddle
	reasons int            // because, for example, so that
	begins  []string       // the sentences that begin with a question word
	text    int            // lines that are not blank, of code only
	comment int            // those of them that are comments
}

// Words that make a reader stop and look for the noun, by the name of their figure.
var riddle = map[string]*regexp.Regexp{
	"what":    regexp.MustCompile(`(?i)\b(?:what|whatever)\b`),
	"who":     regexp.MustCompile(`(?i)\b(?:who|whoever|nobody|whose|whom)\b`),
	"private": regexp.MustCompile(`(?i)\b(?:flights?|runway|crew|marks?|parked|cut off|found)\b`),
}

var (
	anyWord = regexp.MustCompile(`[A-Za-z']+`)
	reason  = regexp.MustCompile(`(?i)\b(?:because|for\s+example|so\s+that)\b`)
	// A sentence begins at the start of a paragraph, of an item or of a cell, or after a full stop.
	questionFirst = regexp.MustCompile(`(?m)(?:\A|\n\n|[.!?]["')]*\s|^\s*(?:- |\d+\. |#+ )|\| )[*_\s]*((?:What|Who|Whoever|Whatever|Of)\b[^.]{0,60})`)
	codeSpan      = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|<!--.*?-->")
	generated     = regexp.MustCompile(`(?s)<!-- \w+: written by .*?<!-- end of \w+ -->`)
	indentedCode  = regexp.MustCompile(`(?m)^    .*$`)
	glossary      = regexp.MustCompile(`(?ms)^## (?:Words|Glossary)\n.*?(?:^## |\z)`)
)

// add counts a piece of text.
func (p *prose) add(text string) {
	if p.riddles == nil {
		p.riddles = map[string]int{}
	}
	p.words += len(anyWord.FindAllString(text, -1))
	p.reasons += len(reason.FindAllString(text, -1))
	for name, r := range riddle {
		p.riddles[name] += len(r.FindAllString(text, -1))
	}
	for _, m := range questionFirst.FindAllStringSubmatch(text, -1) {
		p.begins = append(p.begins, strings.Join(strings.Fields(m[1]), " "))
	}
}

// addSource counts the comments of a Go file.
func (p *prose) addSource(s source) {
	for _, group := range s.file.Comments {
		p.add(group.Text()) // without directives
	}
	for line := range strings.Lines(s.text) {
		switch line = strings.TrimSpace(line); {
		case line == "":
		case strings.HasPrefix(line, "//"):
			p.comment++
			p.text++
		default:
			p.text++
		}
	}
}

// addDocument counts a document without its code, its glossary and the tables that
// commands write.
func (p *prose) addDocument(text string) {
	text = glossary.ReplaceAllString(generated.ReplaceAllString(text, ""), "")
	p.add(indentedCode.ReplaceAllString(codeSpan.ReplaceAllString(text, " "), ""))
}

// per1000 is how often something stands in a thousand words.
func (p *prose) per1000(n int) float64 { return float64(n) * 1000 / float64(max(p.words, 1)) }

// wordsTest is this file.
const wordsTest = "internal/lint/words_test.go"

// trees are the rooms that hold several packages; the other packages are a room each.
var trees = []string{"bench", "examples", "harness", "internal"}

// room is where the language of a package is counted.
func room(dir string) string {
	for _, tree := range trees {
		if within(dir, tree) {
			return tree
		}
	}
	if dir == "." {
		return "holdfast"
	}
	return dir
}

// comments are the comments of each room. Those of all tests are the room "tests".
func comments(t *testing.T) map[string]*prose {
	t.Helper()
	found := map[string]*prose{}
	for _, s := range slices.Concat(loadHouse(t), benchSources(t)) {
		name := room(s.dir())
		if s.path == wordsTest { // its samples are riddles on purpose
			continue
		} else if s.test() {
			name = "tests"
		}
		if found[name] == nil {
			found[name] = &prose{}
		}
		found[name].addSource(s)
	}
	return found
}

// benchSources are the Go files of the modules under bench.
func benchSources(t *testing.T) []source {
	t.Helper()
	var found []source
	err := filepath.WalkDir(filepath.Join(root, "bench"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".go" {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s, err := parse(strings.TrimPrefix(filepath.ToSlash(name), root+"/"), string(text))
		found = append(found, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// documentProse is the language of each document, by its path.
func documentProse(t *testing.T) map[string]*prose {
	t.Helper()
	found := map[string]*prose{}
	for _, d := range documents(t) {
		name := strings.TrimPrefix(d, root+"/")
		found[name] = &prose{}
		found[name].addDocument(read(t, name))
	}
	return found
}

func TestRiddlesAreSeen(t *testing.T) {
	const text = `// Package x is one. What it holds is
// whatever. So that who reads it knows, because
// for example.
//
//   - Of it
package x

// f says what.

func f() {} // Whose mark was cut off. Of course
`
	var p prose
	p.addSource(sample(t, "x/x.go", text))
	if p.riddles["what"] != 3 || p.riddles["who"] != 2 || p.riddles["private"] != 2 || p.reasons != 3 {
		t.Errorf("counted %v and %d reasons", p.riddles, p.reasons)
	}
	if got := strings.Join(p.begins, "|"); got != "What it holds is whatever|Of it|Of course" {
		t.Errorf("sentences that begin with a question: %s", got)
	}
	if p.text != 8 || p.comment != 6 {
		t.Errorf("%d of %d lines are comments, want 6 of 8", p.comment, p.text)
	}
	p = prose{}
	p.addDocument("# Title\n\nA `what` here.\n\n    what = code\n\n```go\nwhat\n```\n\n| Who | x |\n\n## Words\n\n| mark | flight |\n\n## More\n\nThe mark.\n")
	if p.riddles["what"] != 0 || p.riddles["private"] != 1 || len(p.begins) != 1 {
		t.Errorf("counted %v and %q in a document", p.riddles, p.begins)
	}
}
