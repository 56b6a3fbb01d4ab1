package storage

import (
	"fmt"
	"io"
	"os"
)

// runChild is the main function of a child process.
func runChild(what string) error {
	switch what {
	case "hold": // opens the store, says so, and keeps it until its input ends
		s, err := Open(Options{Dir: os.Getenv("HOLDFAST_TEST_DIR")})
		if err != nil {
			return err
		}
		fmt.Println("open")
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		return s.Close()
	default:
		return fmt.Errorf("unknown child %q", what)
	}
}
