// Package lint checks the rules of this repository that no compiler and no
// linter knows: which package may import which, that time, randomness and
// goroutines come through seam, that each promise and each case has a test that
// names it, and that each dependency has a reason. All of it is in tests, and
// each failure names its remedy.
package lint
