// Package lint checks the rules of this repository that no compiler and no
// linter knows: which package may import which, that time, randomness and
// goroutines come through seam, that each promise and each case has a test that
// names it, that each dependency has a reason, and that comments and documents use
// plain words. All of it is in tests, and each failure names its remedy.
//
// The figures of language and shape, each with its limit, are printed by
//
//	go test ./internal/lint -run Figures -v
package lint
