package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// columns is how wide a terminal is taken to be if it does not tell, or if there
// is none.
const columns = 80

// widthOf is how many columns a line that is written to w may have.
func widthOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return columns
}

// say writes a sentence, as a line or, if it is longer than a line of w, as several.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, wrap(fmt.Sprintf(format, args...), widthOf(w)))
}

// wrap breaks a sentence between words so that its lines have at most width
// columns. A word that is longer, such as a path, stays whole, because one could
// not copy its halves.
func wrap(text string, width int) string {
	var out strings.Builder
	column := 0
	for word := range strings.SplitSeq(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > width:
			out.WriteString("\n  ")
			column = 2
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += n
	}
	return out.String()
}

// cut shortens a line of a table to width columns.
func cut(line string, width int) string {
	if runes := []rune(line); len(runes) > width {
		return string(runes[:max(0, width-1)]) + "…"
	}
	return line
}

// grouped is a number with separators: 1,234,567.
func grouped[N int | int64 | uint64](n N) string {
	digits := fmt.Sprint(n)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// plural is a number of things: 1 file, 1,234 files.
func plural[N int | int64 | uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return grouped(n) + " " + thing + "s"
}

// printable is text as a terminal may be given it.
func printable(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}
