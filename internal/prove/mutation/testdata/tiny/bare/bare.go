// Package bare has no tests.
package bare
