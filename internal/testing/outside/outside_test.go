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

// Each program that is not installed skips a test, and fails it where the variable of that program says required.
func TestMissingPrograms(t *testing.T) {
	promtool := func(t testing.TB) string { return Prometheus(t, "promtool") }
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct {
		browser, promtool string
		chromium, alerts  string
	}{
		{"", "", "is skipped", "is skipped"}, {"required", "", "fails", "is skipped"}, {"", "required", "is skipped", "fails"}, {"1", "no", "is skipped", "is skipped"},
	} {
		t.Setenv("HOLDFAST_BROWSER", c.browser)
		t.Setenv("HOLDFAST_PROMTOOL", c.promtool)
		if _, got := ended(Chromium); got.how != c.chromium || got.text != "NOT RUN: chromium is not installed: apt-get install --no-install-recommends chromium" {
			t.Errorf("with HOLDFAST_BROWSER=%s a test of a page %s: %s", c.browser, got.how, got.text)
		}
		if _, got := ended(promtool); got.how != c.alerts || got.text != "NOT RUN: promtool is not installed: apt-get install --no-install-recommends prometheus" {
			t.Errorf("with HOLDFAST_PROMTOOL=%s a test of the alerts %s: %s", c.promtool, got.how, got.text)
		}
	}
}

// A program that is installed is found, by any of its names, unless its tests are run later.
func TestInstalledPrograms(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Setenv("HOLDFAST_BROWSER", "")
	t.Setenv("HOLDFAST_PROMTOOL", "")
	for _, name := range []string{"chromium-browser", "promtool"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if path, e := ended(Chromium); path != filepath.Join(dir, "chromium-browser") {
		t.Errorf("Chromium is at %q, and the test %s", path, e.how)
	}
	t.Setenv("HOLDFAST_BROWSER", "later")
	if _, e := ended(Chromium); e.how != "is skipped" || e.text != "NOT RUN: HOLDFAST_BROWSER is later" {
		t.Errorf("with HOLDFAST_BROWSER=later a test of a page %s: %s", e.how, e.text)
	}
	if path, e := ended(func(t testing.TB) string { return Prometheus(t, "promtool") }); path != filepath.Join(dir, "promtool") {
		t.Errorf("promtool is at %q, and the test %s", path, e.how)
	}
}
