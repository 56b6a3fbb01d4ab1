package continuous_test

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
)

// folder is a folder that is read, with the folders in it.
type folder struct{ Folders []string }

// Folders reads a folder, and starts a job of the same definition for each folder in it.
// The name Folders inside of Run would be an initialization cycle.
var Folders = continuous.New(continuous.Config[folder]{
	Name: "folder",
	Run: func(ctx context.Context, run *continuous.Run[folder]) error {
		for _, name := range run.State.Folders {
			if _, err := run.Job().Start(ctx, run, run.ID+"/"+name, folder{}); err != nil {
				return err
			}
		}
		return nil
	},
})

func ExampleRun_Job() {
	h, done := open(Folders)
	defer done()
	ctx := context.Background()
	_, err := Folders.Start(ctx, h, "src", folder{Folders: []string{"cmd", "net"}})
	fmt.Println(err)
	for e, err := range h.Watch(ctx, Folders.ID("src/net"), 0) {
		if err != nil || e.Kind == jobs.EventSuccess {
			fmt.Println(e.Kind, err)
			return
		}
	}
	// Output:
	// <nil>
	// success <nil>
}
