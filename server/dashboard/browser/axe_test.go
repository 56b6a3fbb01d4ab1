package browser

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

// axeFile is the file axe.min.js of the package axe-core@4.14.1 of npm, which looks for faults of accessibility in a
// page. It is under the Mozilla Public License 2.0 and no part of the server.
const axeFile = "testdata/axe/axe-core-4.14.1.min.js"

func axe(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(axeFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAxeIsTheReleasedFile(t *testing.T) {
	sum := sha256.Sum256([]byte(axe(t)))
	if got := hex.EncodeToString(sum[:]); got != "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c" {
		t.Errorf("the file has the SHA-256 %s", got)
	}
	for _, name := range []string{"LICENSE.txt", "LICENSE-3RD-PARTY.txt"} {
		if _, err := os.Stat("testdata/axe/" + name); err != nil {
			t.Error(err)
		}
	}
}

// schemes are the schemes of colours with the rules for each. Only rules of colours can find more in dark than in light.
var schemes = []struct{ name, rules string }{
	{"light", `"wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"`},
	{"dark", `"cat.color"`},
}

// findings is an expression: all that axe finds on the page by these rules, a line for each.
func findings(rules string) string {
	return `axe.run({ runOnly: [` + rules + `], resultTypes: ["violations"] })
		.then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + " " + n.target + ": " + n.failureSummary)))`
}

// Proves V18: axe-core finds nothing on any page, in light and in dark.
func TestAxeFindsNothing(t *testing.T) {
	t.Parallel()
	s := furnish(newProfile(t, "light"))
	b := s.open()
	b.do(chromedp.EmulateViewport(1000, 4000)) // nothing is covered, so that the colours behind each text are known
	source := axe(t)
	look := func(at string) {
		t.Helper()
		b.do(chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
			_, err := chromedp.Evaluate[any](source+"; 0")(ctx, to)
			return err
		}))
		for _, scheme := range schemes {
			b.media(scheme.name)
			if !is[bool](b, `matchMedia("(prefers-color-scheme: `+scheme.name+`)").matches`) {
				t.Fatalf("%s is not %s", at, scheme.name)
			}
			for _, f := range awaited[[]string](b, findings(scheme.rules)) {
				t.Errorf("%s in %s: %s", at, scheme.name, f)
			}
		}
	}
	b.visit(s.url("overview"))
	b.until(`document.querySelector("[name=token]")`)
	look("signin")
	s.signInOn(b, "overview")
	s.tourOf(b, look)
	is[bool](b, `document.querySelector("main").insertAdjacentHTML("beforeend", "<button></button><font color=gray>gray</font>"), true`)
	for _, scheme := range schemes {
		b.media(scheme.name)
		if len(awaited[[]string](b, findings(scheme.rules))) == 0 {
			t.Errorf("in %s axe-core does not find a button without a name, and gray text", scheme.name)
		}
	}
}
