package debounce_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

func nop(context.Context, *flush) error { return nil }

func TestValidate(t *testing.T) {
	good := []config{
		{Name: "x", Quiet: time.Second, Flush: nop},
		{Name: "x", Quiet: time.Second, MaxWait: time.Minute, MaxEvents: 10, Flush: nop, Reduce: collect},
		{Name: "x", Mode: debounce.Window, Window: time.Second, Flush: nop, Exhausted: debounce.Drop},
	}
	for _, c := range good {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	bad := map[string]config{
		"no name":                             {Quiet: time.Second, Flush: nop},
		"no flush":                            {Name: "x", Quiet: time.Second},
		"no quiet":                            {Name: "x", Flush: nop},
		"no window":                           {Name: "x", Mode: debounce.Window, Flush: nop},
		"window and quiet":                    {Name: "x", Mode: debounce.Window, Window: time.Second, Quiet: time.Second, Flush: nop},
		"quiet and window":                    {Name: "x", Quiet: time.Second, Window: time.Second, Flush: nop},
		"MaxWait must not be negative: -1ns":  {Name: "x", Quiet: time.Second, MaxWait: -1, Flush: nop},
		"Dedup must not be negative: -1ns":    {Name: "x", Quiet: time.Second, Dedup: -1, Flush: nop},
		"MaxEvents must not be negative: -1":  {Name: "x", Quiet: time.Second, MaxEvents: -1, Flush: nop},
		"MaxPending must not be negative: -1": {Name: "x", Quiet: time.Second, MaxPending: -1, Flush: nop},
		"more than may wait":                  {Name: "x", Quiet: time.Second, MaxEvents: 10, MaxPending: 9, Flush: nop},
		"unknown mode":                        {Name: "x", Mode: 7, Quiet: time.Second, Flush: nop},
		"unknown exhausted":                   {Name: "x", Quiet: time.Second, Exhausted: 7, Flush: nop},
		"negative timeout":                    {Name: "x", Quiet: time.Second, Timeout: -1, Flush: nop},
		"negative retry":                      {Name: "x", Quiet: time.Second, Retry: jobs.Retry{MaxAttempts: -1}, Flush: nop},
		"heartbeat over lease":                {Name: "x", Quiet: time.Second, Flush: nop, Lease: 1, Heartbeat: 2},
	}
	for name, c := range bad {
		if err := c.Validate(); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		} else if strings.Contains(name, "must not") && !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one that says %q", err, name)
		}
		if _, err := object.Open(object.Options{Dir: t.TempDir()}, debounce.New(c)); err == nil {
			t.Errorf("%s: Open took the definition", name)
		}
	}
}
