package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Pages counts the words of one page, and Books those of all pages of a book.
var (
	Pages = workflow.New[string, int]("page", workflow.Config{})
	Books = workflow.New[[]string, int]("book", workflow.Config{})
)

func init() {
	Pages.Func(func(ctx *workflow.Context, page string) (int, error) {
		return workflow.Step(ctx, "count", func(context.Context) (int, error) {
			if page == "" {
				return 0, errors.New("an empty page")
			}
			return len(page), nil
		})
	})
	Books.Func(func(ctx *workflow.Context, pages []string) (total int, err error) {
		counts, err := workflow.Each(ctx, "count", pages, 2, func(ctx *workflow.Context, page string) (int, error) {
			return workflow.Child(ctx, Pages, ctx.ID()+"/"+page, page)
		})
		for _, n := range counts {
			total += n
		}
		return total, err
	})
}

// openBooks opens a host in a directory of its own; a program names one that stays.
func openBooks() (host *object.Host, end func()) {
	dir, err := os.MkdirTemp("", "books")
	if err != nil {
		log.Fatal(err)
	}
	host, err = object.Open(object.Options{Dir: dir}, Books, Pages)
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

// Each runs branches at the same time, here two. The results are in the order of the items.
func ExampleEach() {
	ctx := context.Background()
	host, end := openBooks()
	defer end()
	if _, err := Books.Start(ctx, host, "b", []string{"one", "three", "five"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Books.Wait(ctx, host, "b"))
	// Output: 12 <nil>
}

// A child is a run of its own, with an id and a status.
func ExampleChild() {
	ctx := context.Background()
	host, end := openBooks()
	defer end()
	if _, err := Books.Start(ctx, host, "b", []string{"one"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(Books.Wait(ctx, host, "b"))
	fmt.Println(Pages.Wait(ctx, host, "b/one"))
	// Output:
	// 3 <nil>
	// 3 <nil>
}
