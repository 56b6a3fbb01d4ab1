// Package workflowrow tells the stored rows of a workflow in words, for tools that show a store
// at rest: package harness prints them in a failure, and an operator can print those of
// object.Host.Inspect. A program that runs asks Workflow.Status and Workflow.History instead.
package workflowrow

import (
	"time"

	"github.com/holdfast-dev/holdfast/jobs/internal/history"
)

// Text tells a row of the object of a workflow in one short line: its name and its value. A
// value of more than 60 characters is cut. Times are told as those since a time. For example,
// the entry of a step is
//
//	name: entry 0 step "pay"
//	text: "499"
//
// Entries of the history, signals, Vars and children are told so. ok is false for each other row, whose value the host's codec has
// made, and for one that is damaged. Text is safe for concurrent use.
func Text(key string, value []byte, since time.Time) (name, text string, ok bool) {
	return history.RowText(key, value, since)
}
