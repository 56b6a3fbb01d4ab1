package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wayLine matches a line of a way in ARCHITECTURE.md: a file, then functions with dots
// between them, then perhaps a remark after four blanks or more.
var wayLine = regexp.MustCompile(`(?m)^ {4}([a-z_/]+\.go) +(\w+(?: · \w+)*)(?: {4,}.*)?$`)

// waysThrough returns the section of ARCHITECTURE.md that follows things through the code.
func waysThrough(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Ways through the code\n")
	if !found {
		t.Fatal("ARCHITECTURE.md has no section Ways through the code")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// ARCHITECTURE.md follows a call, an alarm, an event and a metric through the code. Each
// file and function that it names exists.
func TestWaysExist(t *testing.T) {
	section := waysThrough(t)
	lines := wayLine.FindAllStringSubmatch(section, -1)
	if indented := strings.Count(section, "\n    "); len(lines) < 40 || len(lines) != indented {
		t.Fatalf("found %d stops in %d indented lines: a stop is a file, then functions with · between them", len(lines), indented)
	}
	for _, line := range lines {
		code, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(line[1])))
		if err != nil {
			t.Errorf("ARCHITECTURE.md: %v; name the file in which the code is now", err)
			continue
		}
		for _, name := range strings.Split(line[2], " · ") {
			if !regexp.MustCompile(`(?m)^func (\([^)]+\) )?` + name + `[\[(]`).Match(code) {
				t.Errorf("ARCHITECTURE.md: %s has no function %s; walk the way again and mend its list", line[1], name)
			}
		}
	}
}

// A call and an alarm make few stops, and come back to a file once at most, because a
// reader who follows them should not have to leaf back and forth.
func TestWaysAreShort(t *testing.T) {
	most := map[string]int{"A call": 12, "An alarm": 14} // stops
	for _, way := range strings.Split(waysThrough(t), "\n\n**")[1:] {
		name, _, _ := strings.Cut(way, "**")
		limit, bounded := most[name]
		if !bounded {
			continue
		}
		delete(most, name)
		stops, times := wayLine.FindAllStringSubmatch(way, -1), make(map[string]int)
		for _, stop := range stops {
			if times[stop[1]]++; times[stop[1]] == 3 {
				t.Errorf("ARCHITECTURE.md: %s enters %s more than twice: put together what it passes there", name, stop[1])
			}
		}
		if len(stops) == 0 || len(stops) > limit {
			t.Errorf("ARCHITECTURE.md: %s makes %d stops, want 1 to %d", name, len(stops), limit)
		}
	}
	for name := range most {
		t.Errorf("ARCHITECTURE.md follows no way with the title %q", name)
	}
}
