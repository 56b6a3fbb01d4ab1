package harness

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// keepAll stands for a crash that all unsynced commits survive.
const keepAll = math.MaxInt

// place is one passing of a point: the n-th of its name for its object. Since it
// counts for each object apart, it stays valid when other objects change.
type place struct {
	seam.Point
	n int
}

func (p place) String() string { return fmt.Sprintf("%s/%s#%d", p.Name, p.Object, p.n) }

// named reports whether text is p.String().
func (p place) named(text string) bool {
	return strings.HasPrefix(text, p.Name) && text == p.String()
}

// crash is a death of the process at a place. The first keep of the unsynced commits
// survive it, or the blocks that are left of a torn write.
type crash struct {
	at   string // place.String()
	keep int
	torn uint64 // not 0: the seed of the torn write; keep is then 0
}

// schedule is when a run crashes, and which faults strike it.
type schedule struct {
	seed    uint64
	crashes []crash
	faults  []fault
}

// String is the form that Replay takes.
func (p schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "v1:seed=%d", p.seed)
	for _, f := range p.faults {
		fmt.Fprintf(&b, ":%s", f)
	}
	for _, c := range p.crashes {
		fmt.Fprintf(&b, ":crash=%s,%s", escape(c.at), c.leaves())
	}
	return b.String()
}

// leaves is the part of a crash's text that tells which commits survive.
func (c crash) leaves() string {
	if c.torn != 0 {
		return fmt.Sprintf("torn=%d", c.torn)
	}
	return "keep=" + keepText(c.keep)
}

func keepText(n int) string {
	if n == keepAll {
		return "all"
	}
	return strconv.Itoa(n)
}

// escape leaves text without the characters that a schedule is parsed by, and
// without those that a quoted line would change.
func escape(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`%:,="'\`+"`", c) >= 0 {
			fmt.Fprintf(&b, "%%%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unescape(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i+2 >= len(text) {
			return "", fmt.Errorf("%q ends within an escape", text)
		}
		c, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("%q: %w", text, err)
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), nil
}

// parseSchedule is the reverse of schedule.String.
func parseSchedule(text string) (p schedule, err error) {
	parts := strings.Split(strings.TrimSpace(text), ":")
	if parts[0] != "v1" {
		return p, fmt.Errorf("schedule %q does not begin with v1", text)
	}
	for _, part := range parts[1:] {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "seed":
			p.seed, err = strconv.ParseUint(value, 10, 64)
		case "crash":
			var c crash
			c, err = parseCrash(value)
			p.crashes = append(p.crashes, c)
		default:
			var f fault
			f, err = parseFault(faultKind(name), value)
			p.faults = append(p.faults, f)
		}
		if err != nil {
			return p, fmt.Errorf("schedule %q: %w", text, err)
		}
	}
	return p, nil
}

func parseFault(kind faultKind, text string) (f fault, err error) {
	if !slices.Contains(faultKinds, kind) {
		return f, fmt.Errorf("unknown part %q", kind)
	}
	f.kind = kind
	parts := strings.Split(text, ",")
	if f.at, err = unescape(parts[0]); err != nil {
		return f, err
	}
	for _, part := range parts[1:] {
		switch name, value, _ := strings.Cut(part, "="); {
		case name == "by":
			f.by, err = time.ParseDuration(value)
		case name == "keep" && kind.endsProcess():
			f.keep, err = parseKeep(value)
		default:
			err = fmt.Errorf("unknown part %q", part)
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

func parseKeep(text string) (int, error) {
	if text == "all" {
		return keepAll, nil
	}
	n, err := strconv.Atoi(text)
	if err == nil && n < 0 {
		err = fmt.Errorf("keep=%d is negative: it is how many commits survive, or all", n)
	}
	return n, err
}

func parseCrash(text string) (c crash, err error) {
	at, leaves, _ := strings.Cut(text, ",")
	if c.at, err = unescape(at); err != nil {
		return c, err
	}
	switch name, value, _ := strings.Cut(leaves, "="); name {
	case "":
		c.keep = keepAll
	case "keep":
		c.keep, err = parseKeep(value)
	case "torn":
		if c.torn, err = strconv.ParseUint(value, 10, 64); c.torn == 0 && err == nil {
			err = errors.New("torn=0 is no seed")
		}
	default:
		err = fmt.Errorf("unknown part %q", leaves)
	}
	return c, err
}
