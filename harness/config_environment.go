package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// overrideVariable is the environment variable that changes the options of every
// Exhaust, Check and Fuzz of a test run. The package comment lists its keys.
const overrideVariable = "HOLDFAST_CRASHTEST"

// override is one key of the variable.
type override struct {
	key, values string
	set         func(c *Config, value string) error
}

var overrides = []override{
	{"depth", "1 or 2", func(c *Config, v string) error { return setInt(&c.depth, v, 1, 2) }},
	{"budget", "a number of schedules, from 1", func(c *Config, v string) error { return setInt(&c.budget, v, 1, 1<<40) }},
	{"store", "map, pebble, log or takeover", setStore},
	{"seed", "a number", func(c *Config, v string) (err error) {
		c.seed, err = strconv.ParseUint(v, 10, 64)
		return err
	}},
	{"workers", "a number of runs at a time, from 1", func(c *Config, v string) error { return setInt(&c.workers, v, 1, 1<<10) }},
	{"report", "the absolute path of a file", setReport},
}

func setInt(to *int, value string, least, most int) error {
	n, err := strconv.Atoi(value)
	if err == nil && (n < least || n > most) {
		err = fmt.Errorf("%d is not between %d and %d", n, least, most)
	}
	*to = n
	return err
}

func setStore(c *Config, value string) error {
	switch value {
	case storeMap:
		MapStore()(c)
	case storePebble:
		PebbleStore()(c)
	case storeLog:
		LogStore()(c)
	case storeTaken:
		TakeoverStore()(c)
	default:
		return fmt.Errorf("there is no store %q", value)
	}
	return nil
}

// setReport wants an absolute path, since each package is tested in a directory
// of its own.
func setReport(c *Config, value string) error {
	if !filepath.IsAbs(value) {
		return fmt.Errorf("%q is not absolute", value)
	}
	c.reportFile = value
	return nil
}

// override changes c by the text of the variable.
func (c *Config) override(text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	for _, part := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if err := c.overrideOne(key, value); err != nil {
			return fmt.Errorf("%s=%q: %q: %w\nvalid keys, between commas:%s", overrideVariable, text, part, err, overrideHelp())
		}
	}
	return nil
}

func (c *Config) overrideOne(key, value string) error {
	for _, o := range overrides {
		if o.key == key {
			return o.set(c, value)
		}
	}
	return fmt.Errorf("there is no key %q", key)
}

func overrideHelp() string {
	var b strings.Builder
	for _, o := range overrides {
		fmt.Fprintf(&b, "\n  %s= %s", o.key, o.values)
	}
	return b.String()
}

// testConfig is the configuration of a test: its options, and over them those of the
// environment.
func testConfig(t testing.TB, opts []Option) *Config {
	t.Helper()
	c := newConfig(opts)
	if err := c.override(os.Getenv(overrideVariable)); err != nil {
		t.Fatalf("harness: %v", err)
	}
	return c
}
