package engine

import "github.com/holdfast-dev/holdfast/alarm"

// MaxTextBytes is how much of the text of an error, or of a reason, is stored and
// told in events. The errors themselves are not changed.
const MaxTextBytes = 2 << 10

// Shorten cuts text to MaxTextBytes without breaking a character.
func Shorten(text string) string { return alarm.Cut(text, MaxTextBytes) }
