package object_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Door is an object. One turn at a time has it, so it needs no mutex.
type Door struct {
	st   *object.State
	open bool
}

// NewDoor makes a door in memory from its stored rows.
func NewDoor(ctx context.Context, st *object.State) (*Door, error) {
	d := &Door{st: st}
	_, err := st.Storage().GetInto(ctx, "open", &d.open)
	return d, err
}

// Push opens a closed door and closes an open one.
func (d *Door) Push(ctx context.Context, _ struct{}) (bool, error) {
	d.open = !d.open
	return d.open, d.st.Storage().Put(ctx, "open", d.open)
}

// A program defines its classes and methods once, at package level. Options of a class
// follow the constructor.
var (
	Doors = object.Define("door", NewDoor, object.ClassOptions{IdleAfter: time.Minute, MailboxLimit: 100})
	Push  = object.Handle(Doors, "push", (*Door).Push)
)

// A class has a name, a constructor and methods; a host runs its objects.
func ExampleDefine() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "doors") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Doors)
	if err != nil {
		log.Fatal(err)
	}

	for range 2 {
		open, err := Push.Call(ctx, host, "kitchen", struct{}{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(Doors.ID("kitchen"), "is open:", open)
	}

	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// door/kitchen is open: true
	// door/kitchen is open: false
}
