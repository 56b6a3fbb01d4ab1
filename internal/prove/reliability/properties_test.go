package main

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Case HN1: the property tests run with random seeds here, so none may be left out.
func TestPropertyTests(t *testing.T) {
	found, err := propertyTests(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []property{{"alarm", "TestRowRoundTrip"}, {"alarm", "TestBackoffProperties"}, {"storage", "TestExpire"}, {"recovery", "TestCheckIsIdempotent"}} {
		if !slices.Contains(found, want) {
			t.Errorf("%v is not among the property tests %v", want, found)
		}
	}
	s := suite{}
	if floor := s.floor("properties"); float64(len(found)) < floor {
		t.Errorf("%d property tests, below the floor of %v", len(found), floor)
	}
}

func TestChecking(t *testing.T) {
	const text = `package x
func TestOne(t *testing.T) { t.Run("a", func(t *testing.T) { rapid.Check(t, nil) }) }
func TestTwo(t *testing.T) { harness.Check(t, nil) }
func helper(t *testing.T) { rapid.Check(t, nil) }
`
	file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := checking(file); !slices.Equal(got, []string{"TestOne"}) {
		t.Errorf("property tests are %q", got)
	}
}

func TestInputs(t *testing.T) {
	const out = "    a_test.go:1: [rapid] OK, passed 100 tests (1.5s)\n    a_test.go:2: [rapid] OK, passed 20 tests (500ms)\nPASS\n"
	if n, took := inputsOf([]byte(out)); n != 120 || took != 2*time.Second {
		t.Errorf("%d inputs in %s", n, took)
	}
}
