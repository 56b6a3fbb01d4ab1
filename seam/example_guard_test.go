package seam_test

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/holdfast-dev/holdfast/seam"
)

func ExampleGuard() {
	var prices map[string]int
	err := seam.Guard(func() error {
		prices["tea"] = 499
		return nil
	}, func(p *seam.PanicError) error { return fmt.Errorf("set the price: %w", p) })
	fmt.Println(err)
	// Output: set the price: panic: assignment to entry in nil map
}

func ExamplePanicError_TakeStack() {
	told := make(chan bool)
	go func() {
		_ = seam.Guard(func() error { runtime.Goexit(); return nil }, func(p *seam.PanicError) error {
			p.TakeStack()
			told <- strings.Contains(string(p.Stack), "ExamplePanicError_TakeStack")
			return p
		})
	}()
	fmt.Println("the stack names the code:", <-told)
	// Output: the stack names the code: true
}
