package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
)

const sample = `// Copyright notice, which is no doc comment.

// Package sample documents.
//
//go:generate nothing
package sample

// Group comment.
const (
	// Single constant.
	A = 1 // trailing
)

// Shape type.
type Shape struct {
	// Side field.
	Side int
}

// Area method. Ärea, x2y, an.
func (Shape) Area() {
	// inside
}
`

// The doc comments of packages, declarations and fields are counted, and no other comments.
func TestTermsOfADocument(t *testing.T) {
	r := newReading()
	r.addDocument("sample.go", []byte(sample))
	want := map[string]int{}
	for _, term := range strings.Fields("package sample documents group comment single constant shape type side field area method ärea") {
		want[term]++
	}
	if !maps.Equal(r.Terms, want) || r.Sums != (sums{Documents: 1, Words: 14}) {
		t.Errorf("the sums are %+v, the terms %v", r.Sums, r.Terms)
	}
	r.addDocument("broken.go", []byte("// Package broken is not counted.\npackage broken\n\nfunc {"))
	if !maps.Equal(r.Terms, want) || r.Sums != (sums{Documents: 2, Broken: 1, Words: 14}) {
		t.Errorf("with a broken document the sums are %+v, the terms %v", r.Sums, r.Terms)
	}
}

func TestLettersOfATerm(t *testing.T) {
	for n, want := range map[int]int{2: 0, 3: 1, 40: 1, 41: 0} {
		for _, letter := range []string{"a", "É"} {
			r := newReading()
			r.addText("1" + strings.Repeat(letter, n) + "-")
			if r.Terms[strings.ToLower(strings.Repeat(letter, n))] != want || r.Sums.Words != want {
				t.Errorf("%d letters %s: %v", n, letter, r.Terms)
			}
		}
	}
}

func TestReadPackage(t *testing.T) {
	tree := treeOf(map[string]string{"p/a.go": "// Oak oak.\npackage p\n", "p/b.go": "// Oak elm.\npackage p\n", "p/q/c.go": "// Ash.\npackage q\n"})
	r, err := readPackage(context.Background(), tree, "p")
	if err != nil || !maps.Equal(r.Terms, map[string]int{"oak": 3, "elm": 1}) || r.Sums != (sums{Documents: 2, Words: 4}) {
		t.Errorf("read %+v, %v", r, err)
	}
	if _, err := readPackage(context.Background(), tree, "absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent package: %v", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := readPackage(ended, tree, "p"); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancel: %v", err)
	}
}

func TestTop(t *testing.T) {
	var counts []count
	for i := range topMax + 2 {
		counts = append(counts, count{fmt.Sprintf("t%02d", i), i / 2})
	}
	got := top(counts)
	if len(got) != topMax || got[0] != (count{"t10", 5}) || got[1] != (count{"t11", 5}) || got[topMax-1] != (count{"t03", 1}) {
		t.Errorf("the most frequent are %v", got)
	}
	if got := top(counts[:topMax:topMax]); len(got) != topMax {
		t.Errorf("of %d terms %d are the most frequent", topMax, len(got))
	}
	if got := top([]count{{"a", 1}}); !slices.Equal(got, []count{{"a", 1}}) {
		t.Errorf("the only term: %v", got)
	}
}

// A term is in one shard, which stays the same, because stored runs depend on it.
func TestShardOf(t *testing.T) {
	all := map[string]int{"oak": 1, "elm": 2, "ash": 3, "birch": 4, "alder": 5}
	got := make(map[string]int)
	for number, part := range split(all, shardCount) {
		for term, n := range part {
			got[term] += n
			if shardOf(term, shardCount) != number {
				t.Errorf("the term %q is in shard %d", term, number)
			}
		}
	}
	if !maps.Equal(got, all) {
		t.Errorf("the shards have %v", got)
	}
	if a, b := shardOf("oak", 64), shardOf("elm", 64); a != 50 || b != 43 {
		t.Errorf("the shards are %d and %d", a, b)
	}
}
