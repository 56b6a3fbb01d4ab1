package recovery_test

import (
	"context"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/object"
)

// exampleHost opens a host in a directory that done removes.
func exampleHost() (h *object.Host, done func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	if h, err = object.Open(object.Options{Dir: dir}, ticker); err != nil {
		log.Fatal(err)
	}
	return h, func() {
		if err := h.Shutdown(context.Background()); err != nil {
			log.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			log.Fatal(err)
		}
	}
}
