package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// runChild is the main function of a child process.
func runChild(what string) error {
	o := Options{Dir: os.Getenv("HOLDFAST_TEST_DIR")}
	switch what {
	case "try": // opens the store, says whether that was possible, and closes it
		s, err := Open(o)
		if errors.Is(err, ErrLocked) {
			fmt.Println("locked")
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Println("open")
		return s.Close()
	case "hold", "look": // opens the store, says so, and keeps it until its input ends
		opener := Open
		if what == "look" {
			opener = OpenReadOnly
		}
		s, err := opener(o)
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
