package dashboard

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// functions are those of the templates.
var functions = template.FuncMap{
	"link": link, "age": age, "name": Name, "size": sizeOf, "item": item, "pager": pager, "rawkey": rawKey, "topic": Topic,
	"span": span, "word": word, "taskword": TaskWord, "preview": preview, "words": words, "clock": clock,
}

// words are texts for a range.
func words(all ...string) []string { return all }

// Name returns a name as a page shows it: in quotes with escapes if a character of it would not be
// seen as itself, such as a control character.
func Name(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(s)
	}
	return s
}

// age returns how long ago a time is, or how far ahead, with the time itself in the title.
func age(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	t = t.UTC()
	d := time.Since(t)
	text := span(d) + " ago"
	if d < 0 {
		text = "in " + span(-d)
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, // digits and words of this package alone
		t.Format(time.RFC3339Nano), t.Format(absolute), text))
}

// absolute is a time in a title. The script of the pages writes it in the same form.
const absolute = "2006-01-02 15:04:05.000 UTC"

// span returns a length of time in its greatest unit, and the next one if that is small.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return strconv.Itoa(int(d.Hours())/24) + " days"
}

// sizeOf is size in templates.
func sizeOf(n any) (string, error) {
	switch n := n.(type) {
	case int:
		return size(n), nil
	case uint64:
		return size(n), nil
	}
	return "", fmt.Errorf("dashboard: the size of a %T", n)
}

// clock returns the time of the day, with the time itself in the title.
func clock(t time.Time) template.HTML {
	t = t.UTC()
	return template.HTML(fmt.Sprintf(`<time class="clock" datetime="%s" title="%s">%s</time>`, // digits and words of this package alone
		t.Format(time.RFC3339Nano), t.Format(absolute), t.Format("15:04 UTC")))
}

// size returns a number of bytes in words.
func size[N int | uint64](n N) string {
	switch {
	case n < 1<<10:
		return strconv.FormatUint(uint64(n), 10) + " bytes"
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
