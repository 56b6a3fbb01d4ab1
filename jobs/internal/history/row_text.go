package history

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-dev/holdfast/internal/row"
)

// Beginnings of the keys of a run's rows. A sequence number of 8 bytes follows, but a name
// after `v/`.
const (
	entryRow  = "e/"
	signalRow = "s/"
	varRow    = "v/"
	childRow  = "c/"
)

// textRunes is the most characters of a value, or of an error, in a text.
const textRunes = 60

// RowText tells a row of a run in one short line: its name, for example `entry 3 step "pay"`,
// and its value. Times are told as those since a time. ok is false if the row is none of an
// entry, a signal, a Var or a child, or is damaged.
func RowText(key string, value []byte, since time.Time) (name, text string, ok bool) {
	if len(key) < 2 {
		return "", "", false
	}
	switch rest := key[2:]; key[:2] {
	case varRow:
		return "var " + strconv.Quote(rest), short(value), true
	case entryRow, signalRow, childRow:
		if len(rest) != 8 {
			return "", "", false
		}
		return sequenced(key[:2], binary.BigEndian.Uint64([]byte(rest)), value, since)
	}
	return "", "", false
}

// sequenced is RowText of a row with a sequence number.
func sequenced(prefix string, seq uint64, value []byte, since time.Time) (name, text string, ok bool) {
	switch prefix {
	case entryRow:
		e, err := Decode(seq, value)
		name = fmt.Sprintf("entry %d ", seq)
		if e.Scope != "" {
			name += strings.TrimSuffix(e.Scope, "/") + " "
		}
		name += e.Kind.String()
		if e.Name != "" {
			name += " " + strconv.Quote(e.Name)
		}
		return name, e.Text(since), err == nil
	case signalRow:
		r := row.Read(value)
		of := r.Text()
		r.Required()
		text = short(r.Rest())
		return fmt.Sprintf("signal %d %q", seq, of), text, r.OK()
	}
	var child struct {
		Class, Name string
		Answer      *struct {
			Flags Flags
			Err   string
			Value []byte
		}
	}
	if json.Unmarshal(value, &child) != nil {
		return "", "", false
	}
	text = child.Class + "/" + child.Name
	if a := child.Answer; a != nil {
		answer := Entry{Kind: Answer, Flags: a.Flags, Err: a.Err, Value: a.Value}
		text += " has answered: " + answer.Text(since)
	}
	return fmt.Sprintf("child of entry %d", seq), text, true
}

// Text tells the outcome of e in one short line. Times are told as those since a time.
func (e *Entry) Text(since time.Time) string {
	var words []string
	switch {
	case e.Kind == Cancel && e.Flags&Failed != 0:
		words = append(words, "it has cut off the sleep before it")
	case e.Kind == Try, e.Kind == Step && e.Flags&Failed != 0 && e.Attempt > 0:
		words = append(words, fmt.Sprintf("attempt %d %s", e.Attempt, e.ending()))
	case e.Flags != 0:
		words = append(words, e.ending())
	case e.Kind == First:
		r := row.Read(e.Value)
		words = append(words, fmt.Sprintf("branch %d of its scope has won", r.Uint()))
	}
	if !e.Until.IsZero() {
		until := "until "
		if e.Kind == Try {
			until = "next at "
		}
		words = append(words, until+e.Until.Sub(since).String())
	}
	text := strings.Join(words, ", ")
	said := ""
	switch {
	case e.Err != "":
		said = short([]byte(e.Err))
	case len(e.Value) > 0 && e.Kind != Try && e.Kind != Join && e.Kind != First:
		said = short(e.Value)
	}
	if text != "" && said != "" {
		return text + ": " + said
	}
	if text+said == "" {
		return "recorded"
	}
	return text + said
}

// endings are the words for flags, the most telling first.
var endings = []struct {
	flag Flags
	word string
}{
	{TooLarge, "too large"}, {Exists, "the id is in use"}, {Cancelled, "cancelled"}, {TimedOut, "timed out"}, {Panicked, "panicked"}, {Failed, "failed"},
}

// ending is the word for the way in which the operation has ended.
func (e *Entry) ending() string {
	for _, x := range endings {
		if e.Flags&x.flag != 0 {
			return x.word
		}
	}
	return "ended"
}

// short is a value as text, quoted if it is none, and its beginning if it is long.
func short(b []byte) string {
	text := string(b)
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.ContainsRune(text, unicode.ReplacementChar) {
		text = strconv.Quote(text)
	}
	if r := []rune(text); len(r) > textRunes {
		return fmt.Sprintf("%s... (%d bytes)", string(r[:textRunes]), len(b))
	}
	return text
}
