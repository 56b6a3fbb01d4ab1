// Package socket has the Unix socket of a server: its place, its listener, and the user at its other end.
//
//   - The directory of a socket has the mode 0700, so that no other user but root reaches the socket.
//   - A process that listens has a lock of that directory. So the socket of a process that was killed
//     is removed by the next one, and that of a process that runs never is.
//   - The listener removes the socket when it closes.
package socket

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrInUse says that another listener has the socket.
var ErrInUse = errors.New("the socket is in use")

// maxBytes bounds the path of a socket. The limits of systems lie between 104 and 108.
const maxBytes = 100

// name is the last part of the path of each socket of a store.
const name = "holdfast.sock"

// Of returns the path of the socket of the server of the store in a directory.
func Of(dir string) string { return filepath.Join(dir, ".run", name) }

// Place returns where the socket with a path lies. That is the path without symbolic links, so that
// two ways to one directory lead to one socket. If it has more than 100 bytes, it is a directory of its
// own in $XDG_RUNTIME_DIR; without that it is an error.
func Place(path string) (string, error) {
	whole, err := resolved(path)
	if err != nil {
		return "", err
	}
	if len(whole) <= maxBytes {
		return whole, nil
	}
	runtime := os.Getenv("XDG_RUNTIME_DIR")
	if runtime == "" {
		return "", fmt.Errorf("%q has %d bytes, at most %d are possible: name a shorter path, or set XDG_RUNTIME_DIR to a directory for sockets", whole, len(whole), maxBytes)
	}
	sum := sha256.Sum256([]byte(whole))
	short := filepath.Join(runtime, "holdfast-"+hex.EncodeToString(sum[:8]), name)
	if len(short) > maxBytes {
		return "", fmt.Errorf("%q and %q in its place have more than %d bytes: name a shorter path", whole, short, maxBytes)
	}
	return short, nil
}

// resolved is a path from the root, with the symbolic links of its nearest parent that exists resolved.
func resolved(path string) (string, error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := filepath.Base(whole)
	for dir := filepath.Dir(whole); ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest), nil
		}
		if dir == filepath.Dir(dir) {
			return whole, nil
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
