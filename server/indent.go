package server

import (
	"bytes"
	"encoding/json"
)

// indented is JSON with line breaks and indents for a page. A value that is nested deeply would grow by its depth with
// each line: above 4 times its size and 64 KiB more it stays in one line.
func indented(raw []byte) (string, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return "", err
	}
	if indentedSize(b.Bytes()) > 4*b.Len()+64<<10 {
		return b.String(), nil
	}
	line := bytes.Clone(b.Bytes())
	b.Reset()
	err := json.Indent(&b, line, "", "  ")
	return b.String(), err
}

// indentedSize is how many bytes json.Indent makes of compact JSON with an indent of two spaces.
func indentedSize(compact []byte) int {
	size, depth := len(compact), 0
	text, escaped := false, false
	for i, c := range compact {
		switch {
		case escaped:
			escaped = false
		case text:
			escaped, text = c == '\\', c != '"'
		case c == '"':
			text = true
		case c == ':':
			size++ // a space behind it
		case c == ',':
			size += 1 + 2*depth
		case c == '{' || c == '[':
			if depth++; compact[i+1] != c+2 { // else it is empty, and stays in its line
				size += 1 + 2*depth
			}
		case c == '}' || c == ']':
			if depth--; compact[i-1] != c-2 {
				size += 1 + 2*depth
			}
		}
	}
	return size
}
