package outside

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// heard is a test that notes how it ends. Both ends are panics, because neither returns.
type heard struct{ testing.TB }

type end struct{ how, text string }

func (heard) Helper() {}

func (heard) Fatalf(format string, args ...any) { panic(end{"fails", fmt.Sprintf(format, args...)}) }
func (heard) Skipf(format string, args ...any) {
	panic(end{"is skipped", fmt.Sprintf(format, args...)})
}

// ended is the end of a test that needs a program, or the path that it got.
func ended(need func(testing.TB) string) (path string, e end) {
	defer func() {
		if p := recover(); p != nil {
			e = p.(end)
		}
	}()
	return need(heard{}), end{}
}

// A test that needs a program is skipped unless the program's variable says required, and fails if it is missing then.
func TestMissingPrograms(t *testing.T) {
	promtool := func(t testing.TB) string { return Prometheus(t, "promtool") }
	t.Setenv("PATH", t.TempDir())
	const skipped, fails = "is skipped", "fails"
	for _, c := range []struct {
		browser, promtool string
		chromium, alerts  string
	}{
		{"", "", skipped, skipped}, {"required", "", fails, skipped}, {"", "required", skipped, fails}, {"1", "no", skipped, skipped},
	} {
		t.Setenv("HOLDFAST_BROWSER", c.browser)
		t.Setenv("HOLDFAST_PROMTOOL", c.promtool)
		texts := map[string]string{
			skipped: "NOT RUN: it needs the Debian package chromium and HOLDFAST_BROWSER=required",
			fails:   "chromium is not installed: apt-get install --no-install-recommends chromium",
		}
		if _, got := ended(Chromium); got.how != c.chromium || got.text != texts[c.chromium] {
			t.Errorf("with HOLDFAST_BROWSER=%s a browser test %s: %s", c.browser, got.how, got.text)
		}
		if _, got := ended(promtool); got.how != c.alerts {
			t.Errorf("with HOLDFAST_PROMTOOL=%s an alert test %s: %s", c.promtool, got.how, got.text)
		}
	}
}

// An installed program is found, by any of its names, if its tests are required.
func TestInstalledPrograms(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, name := range []string{"chromium-browser", "promtool"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOLDFAST_BROWSER", "")
	if path, e := ended(Chromium); e.how != "is skipped" {
		t.Errorf("Chromium is not required: it is at %q, and the test %s", path, e.how)
	}
	t.Setenv("HOLDFAST_BROWSER", required)
	t.Setenv("HOLDFAST_PROMTOOL", required)
	if path, e := ended(Chromium); path != filepath.Join(dir, "chromium-browser") {
		t.Errorf("Chromium is at %q, and the test %s", path, e.how)
	}
	if path, e := ended(func(t testing.TB) string { return Prometheus(t, "promtool") }); path != filepath.Join(dir, "promtool") {
		t.Errorf("promtool is at %q, and the test %s", path, e.how)
	}
}
