package dashboard_test

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/server/dashboard"
)

// One part of a page, as a browser asks for it while the page is live.
func ExampleWrite() {
	frame := dashboard.Frame{Self: dashboard.Link{Route: "value"}, Part: "none"}
	if err := dashboard.Write(os.Stdout, frame, dashboard.Value{Key: "total"}); err != nil {
		fmt.Println(err)
	}
	// Output: dashboard: the page has no such part
}

// Each name is a parameter of an address, even if it looks like a path.
func ExampleLink() {
	to, err := dashboard.Link{Route: "object"}.With("class", "cart", "name", "../../metrics?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(to)
	// Output: object?class=cart&name=..%2F..%2Fmetrics%3F
}

func ExampleName() {
	fmt.Println(dashboard.Name("anna"), dashboard.Name("a\x1b[31m"))
	// Output: anna "a\x1b[31m"
}

func ExampleTopic() {
	fmt.Println(dashboard.Topic("cart", ""), dashboard.Topic("cart", "a/b c"))
	// Output: cart cart/a%2Fb+c
}

func ExampleFindAsset() {
	style, ok := dashboard.FindAsset("page.css")
	fmt.Println(style.Kind, ok)
	// Output: text/css; charset=utf-8 true
}

// A pending task is queued, or waiting for its time.
func ExampleTaskWord() {
	fmt.Println(dashboard.TaskWord(workerpool.Pending, time.Time{}), dashboard.TaskWord(workerpool.Pending, time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)), dashboard.TaskWord(workerpool.Running, time.Time{}))
	// Output: queued waiting running
}
