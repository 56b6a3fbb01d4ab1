package jobs

import "unicode/utf8"

// MaxTextBytes is how much of the text of an error, or of a reason, is stored and
// told in events. The errors themselves are not changed.
const MaxTextBytes = 2 << 10

// Shorten cuts text to MaxTextBytes without breaking a character.
func Shorten(text string) string {
	if len(text) <= MaxTextBytes {
		return text
	}
	n := MaxTextBytes
	for n > MaxTextBytes-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
