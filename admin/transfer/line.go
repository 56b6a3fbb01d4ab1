package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/object"
)

// formatVersion is the version of the form of a file. A file of another one is refused.
const formatVersion = 1

// line is a line of a file, in JSON. Exactly one of its pointers is set, which says of which kind
// it is, and Keys and marks have a value beside it. FORMAT.md has the table.
type line struct {
	Header    *header               `json:"object,omitempty"`
	Alarm     *object.AlarmState    `json:"alarm,omitempty"`
	Execution *object.OpenExecution `json:"execution,omitempty"`
	Letter    *letter               `json:"letter,omitempty"`
	Event     *event                `json:"event,omitempty"`
	Key       *bytesOrText          `json:"key,omitempty"`
	Mark      *bytesOrText          `json:"mark,omitempty"`
	Expires   time.Time             `json:"expires,omitzero"` // of a mark
	Value     *bytesOrText          `json:"value,omitempty"`  // of a key or a mark
	Sum       *string               `json:"sha256,omitempty"` // of all bytes before this line, in hexadecimal
}

// header is the first line.
type header struct {
	Format int    `json:"format"`
	Class  string `json:"class"`
	Name   string `json:"name"`
	Label  string `json:"label,omitempty"`
	Codec  string `json:"codec,omitempty"` // of the host that has stored the values, if it is known
	Counts counts `json:"counts"`
	// Messages is how many messages to the object waited, which are not in the file.
	Messages int `json:"messages,omitempty"`
}

// counts are how many lines of each kind follow.
type counts struct {
	Alarms     int `json:"alarms"`
	Executions int `json:"executions"`
	Letters    int `json:"letters"`
	Events     int `json:"events"`
	Keys       int `json:"keys"`
	Marks      int `json:"marks"`
}

// letter is a dead letter with its number, which rows of the object may name.
type letter struct {
	Seq uint64 `json:"seq"`
	object.DeadLetter
}

// event is an event without its number.
type event struct {
	At      time.Time    `json:"at"`
	Kind    string       `json:"kind"`
	Expires time.Time    `json:"expires"`
	Data    *bytesOrText `json:"data,omitempty"`
}

// The kinds of lines in their order in a file.
const (
	kindHeader = iota
	kindAlarm
	kindExecution
	kindLetter
	kindEvent
	kindKey
	kindMark
	kindSum
)

// kind returns of which kind the line is, or an error for one that is of none or of two.
func (l *line) kind() (int, error) {
	found, n := 0, 0
	for kind, is := range [...]bool{
		l.Header != nil, l.Alarm != nil, l.Execution != nil, l.Letter != nil, l.Event != nil, l.Key != nil, l.Mark != nil, l.Sum != nil,
	} {
		if is {
			found, n = kind, n+1
		}
	}
	valued := found == kindKey || found == kindMark
	if n != 1 || (l.Value != nil) != valued || l.Expires.IsZero() == (found == kindMark) {
		return 0, errors.New("it is of none of the kinds of lines, or of two")
	}
	return found, nil
}

// bytesOrText is bytes that JSON has as a string if they are text, and else in base64, as
// {"base64":"…"}. Each value has one form.
type bytesOrText []byte

// base64 is the form of bytes that are no text.
type base64 struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON writes text as a string. Text that escapes would make more than twice as long is
// written in base64 too, so that the length of a line is bounded.
func (b bytesOrText) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		if text, err := encoded(string(b)); err != nil || len(text) <= 2*len(b)+16 {
			return text, err
		}
	}
	return json.Marshal(base64{b})
}

// UnmarshalJSON is the reverse.
func (b *bytesOrText) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		err := json.Unmarshal(raw, &text)
		*b = bytesOrText(text)
		return err
	}
	var form base64
	err := json.Unmarshal(raw, &form)
	*b = form.Base64
	return err
}

// encoded returns the JSON of v without escapes for HTML, which would hide the text of values.
func encoded(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// parse reads a line. It refuses each form but the one that Export writes, so a field that is
// unknown, twice there or in another order is an error.
func parse(raw []byte) (l line, kind int, err error) {
	if err := json.Unmarshal(raw, &l); err != nil {
		return l, 0, err
	}
	if kind, err = l.kind(); err != nil {
		return l, 0, err
	}
	again, err := encoded(l)
	if err != nil {
		return l, 0, err
	}
	if !bytes.Equal(raw, again) {
		return l, 0, fmt.Errorf("it is not in the form that an export has: expected %.200s", again)
	}
	return l, kind, nil
}
