// Package docs gives programs the documents that they quote, so that no sentence
// of them is written down twice.
package docs

import _ "embed" // for Contract

// Contract is the text of CONTRACT.md: the promises, by number.
//
//go:embed CONTRACT.md
var Contract string
