package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/object"
)

// Bank keeps calls from a bank that has failed twice within a minute, for ten minutes.
var Bank = breaker.New(breaker.Config{Name: "bank", Failures: 2, OpenFor: 10 * time.Minute})

// charge stands for a request to the bank.
func charge(context.Context) error { return errors.New("503 Service Unavailable") }

// openBank opens a host with the breaker, in a directory that the function it returns removes.
func openBank() (*object.Host, func()) {
	dir, err := os.MkdirTemp("", "bank") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	host, err := object.Open(object.Options{Dir: dir}, Bank)
	if err != nil {
		log.Fatal(err)
	}
	return host, func() {
		if err := host.Shutdown(context.Background()); err != nil {
			log.Fatal(err)
		}
		os.RemoveAll(dir)
	}
}

// A breaker is defined once, at package level. Each dependency is an object of it.
func ExampleNew() {
	host, end := openBank()
	defer end()
	ctx := context.Background()

	for range 3 {
		switch err := Bank.Do(ctx, host, "eu", charge); {
		case errors.Is(err, breaker.ErrOpen): // its text says until when, and why
			fmt.Println("the bank was not asked")
		case err != nil:
			fmt.Println(err)
		}
	}
	// Output:
	// 503 Service Unavailable
	// 503 Service Unavailable
	// the bank was not asked
}

// Each dependency has a breaker of its own: while "eu" is open, calls to "us" go through.
func ExampleBreaker_Do() {
	host, end := openBank()
	defer end()
	ctx := context.Background()

	for range 2 {
		if err := Bank.Do(ctx, host, "eu", charge); err != nil {
			fmt.Println(err)
		}
	}
	works := func(context.Context) error { return nil }
	fmt.Println(errors.Is(Bank.Do(ctx, host, "eu", works), breaker.ErrOpen))
	fmt.Println(Bank.Do(ctx, host, "us", works))
	// Output:
	// 503 Service Unavailable
	// 503 Service Unavailable
	// true
	// <nil>
}

// Status is served without a call to the dependency.
func ExampleBreaker_Status() {
	host, end := openBank()
	defer end()
	ctx := context.Background()

	for range 2 {
		if err := Bank.Do(ctx, host, "eu", charge); err != nil {
			st, err := Bank.Status(ctx, host, "eu")
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(st.State, st.Failures, st.Cause)
		}
	}
	// Output:
	// closed 1 503 Service Unavailable
	// open 2 503 Service Unavailable
}

// Reset closes a breaker by hand.
func ExampleBreaker_Reset() {
	host, end := openBank()
	defer end()
	ctx := context.Background()

	for range 2 {
		if err := Bank.Do(ctx, host, "eu", charge); err != nil {
			fmt.Println(err)
		}
	}
	if err := Bank.Reset(ctx, host, "eu", "the bank called"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Bank.Do(ctx, host, "eu", func(context.Context) error { return nil }))
	// Output:
	// 503 Service Unavailable
	// 503 Service Unavailable
	// <nil>
}
