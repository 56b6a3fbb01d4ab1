package continuous_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// Folder is a folder that is read, with the names of the folders in it.
type Folder struct{ Folders []string }

// Folders reads a folder, and starts a job of its own definition for each folder in it.
// The name Folders inside of Run would be an initialization cycle.
var Folders = continuous.New(continuous.Config[Folder]{
	Name: "folder",
	Run: func(ctx context.Context, run *continuous.Run[Folder]) error {
		for _, name := range run.State.Folders {
			if _, err := run.Job().Start(ctx, run, run.ID+"/"+name, Folder{}); err != nil {
				return err
			}
		}
		return nil
	},
})

// A run starts further jobs of its own definition.
func ExampleRun_Job() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "folders")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Folders)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := Folders.Start(ctx, host, "src", Folder{Folders: []string{"cmd", "net"}}); err != nil {
		log.Fatal(err)
	}
	for e, err := range host.Watch(ctx, Folders.ID("src/net"), 0) {
		if err != nil {
			log.Fatal(err)
		}
		if e.Kind == jobs.EventSuccess {
			fmt.Println("src/net is read")
			break
		}
	}
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: src/net is read
}
