package workload

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/object"
)

// Guarded is a host with a dependency behind a breaker.
type Guarded struct{ *Host }

var (
	dependency = breaker.New(breaker.Config{Name: "dependency", Failures: 1000})
	errDown    = errors.New("down")
)

// OpenGuarded opens a host with a breaker that is closed.
func OpenGuarded(dir string) (*Guarded, error) {
	h, err := OpenHost(dir, object.Options{}, dependency)
	if err != nil {
		return nil, err
	}
	return &Guarded{h}, nil
}

// Do is a call through the breaker; one in a hundred fails.
func (g *Guarded) Do(n int) error {
	err := dependency.Do(context.Background(), g.Host, "eu", func(context.Context) error {
		if n%100 == 0 {
			return errDown
		}
		return nil
	})
	if errors.Is(err, errDown) {
		return nil
	}
	return err
}
