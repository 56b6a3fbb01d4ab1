package dashboard

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Fold is a JSON value whose objects and arrays a page folds.
type Fold struct {
	Name  string // of the field, or the number of the element
	Text  string // the value, or how many parts it has
	Parts []Fold
}

const (
	// maxFolds bounds the parts of a value that is folded, and maxFoldDepth its depth.
	maxFolds     = 1000
	maxFoldDepth = 16
)

// Folded folds valid JSON. It returns nil if there is nothing to fold, or too much: the text of the value is shown then.
func Folded(raw []byte) *Fold {
	left := maxFolds
	f, ok := fold("", raw, maxFoldDepth, &left)
	if !ok || f.Parts == nil {
		return nil
	}
	return &f
}

// fold folds one value. left is how many parts there may still be.
func fold(name string, raw []byte, depth int, left *int) (f Fold, ok bool) {
	raw = bytes.TrimSpace(raw)
	f = Fold{Name: name, Text: string(raw)}
	*left--
	if *left < 0 || depth == 0 {
		return f, false
	}
	if raw[0] != '{' && raw[0] != '[' {
		return f, true
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, _ = dec.Token() // the value is valid
	for dec.More() {
		name := strconv.Itoa(len(f.Parts))
		if raw[0] == '{' {
			t, _ := dec.Token()
			name = Name(t.(string))
		}
		var value json.RawMessage
		_ = dec.Decode(&value)
		part, ok := fold(name, value, depth-1, left)
		if !ok {
			return f, false
		}
		f.Parts = append(f.Parts, part)
	}
	if n := len(f.Parts); n > 0 && raw[0] == '{' {
		f.Text = counted(n, "field")
	} else if n > 0 {
		f.Text = counted(n, "element")
	}
	return f, true
}

// counted is a number of things in words.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}
