package workerpool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// oldGreetings is the definition before the deploy. Its inputs are the numbers of
// customers. It has no Work, so that its tasks wait.
var oldGreetings = workerpool.New(workerpool.Config[int, string]{Name: "greet", Version: "1"})

// Customer is the input after the deploy.
type Customer struct {
	Number   int
	Language string
}

var Greetings = workerpool.New(workerpool.Config[Customer, string]{
	Name:    "greet",
	Version: "2",
	Migrate: migrateCustomer,
	Work: func(_ context.Context, t *workerpool.Task[Customer]) (string, error) {
		return fmt.Sprintf("customer %d is greeted in %s", t.In.Number, t.In.Language), nil
	},
})

// migrateCustomer makes a Customer of an input that another version stored.
func migrateCustomer(from string, raw []byte) (Customer, error) {
	if from != "1" {
		return Customer{}, fmt.Errorf("no customer of version %q is known here", from)
	}
	c := Customer{Language: "English"}
	err := json.Unmarshal(raw, &c.Number)
	return c, err
}

// A deploy changes the type of a pool's inputs while tasks wait.
func ExampleConfig_migrate() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "greetings") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, oldGreetings)
	if err != nil {
		log.Fatal(err)
	}
	task, err := oldGreetings.Enqueue(ctx, host, 7)
	if err != nil {
		log.Fatal(err)
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}

	host, err = object.Open(object.Options{Dir: dir}, Greetings)
	if err != nil {
		log.Fatal(err)
	}
	greeted, err := Greetings.Wait(ctx, host, task.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(greeted)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: customer 7 is greeted in English
}
