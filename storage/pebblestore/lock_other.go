//go:build !unix

package pebblestore

import "os"

// lockHolder knows no holder on this system.
func lockHolder(string) int { return 0 }

// lockForReading has nothing to do, because a writer's open file cannot be opened again
// on this system, and neither can a reader's for writing.
func lockForReading(*os.File) error { return nil }
