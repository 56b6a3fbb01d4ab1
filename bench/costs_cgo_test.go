//go:build cgo

package bench

const withCgo = true
