package harness

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// reportWidth is the most columns that a report takes: with the indent that
// package testing gives it, it stays within 100.
const reportWidth = 92

// indent puts the prefix before each line.
func indent(text, prefix string) string {
	if text == "" {
		return ""
	}
	return prefix + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+prefix)
}

// wrap breaks a text between words, so that no line is longer than width, unless
// a word is.
func wrap(text string, width int) string {
	var lines []string
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			switch {
			case line == "":
				line = word
			case len(line)+1+len(word) > width:
				lines = append(lines, line)
				line = word
			default:
				line += " " + word
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// shorten keeps the ends of a text that is longer than width.
func shorten(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	r := []rune(text)
	tail := (width - 2) / 2
	return string(r[:width-2-tail]) + ".." + string(r[len(r)-tail:])
}

// chunks breaks a text into at most n lines of the width, and says how much is left
// out.
func chunks(text string, width, n int) []string {
	r := []rune(text)
	if len(r) > width*n {
		r = append(r[:width*n-2], '.', '.')
	}
	var lines []string
	for len(r) > width {
		lines = append(lines, string(r[:width]))
		r = r[width:]
	}
	return append(lines, string(r))
}

// count is a number and its noun, in the singular or the plural.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
