//go:build !linux

package measure

// Forgets reports whether Forget does anything on this system.
const Forgets = false

// Forget has no call of this system to use.
func Forget(string) error { return nil }
