package timers_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/timers"
)

// plan is an account with a trial that ends, and a statement at each first of a month.
type plan struct {
	st     *object.State
	timers *timers.Timers
}

func loadPlan(ctx context.Context, st *object.State) (*plan, error) {
	p := &plan{st: st}
	var err error
	p.timers, err = timers.Attach(ctx, st, timers.Options{}, p.fire)
	return p, err
}

// Alarm hands the object's alarm to its timers.
func (p *plan) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return p.timers.Alarm(ctx, info)
}

// fire runs for each timer that is due.
func (p *plan) fire(ctx context.Context, t timers.Timer) error {
	var note string
	if err := t.Payload(&note); err != nil {
		return err
	}
	fmt.Println(t.Name+":", note)
	return p.st.Storage().Put(ctx, "plan", "free")
}

func (p *plan) begin(ctx context.Context, trial time.Duration) (int, error) {
	return 0, errors.Join(
		p.timers.At(ctx, "trial ends", p.st.Now().Add(trial), "back to the free plan"),
		p.timers.At(ctx, "reminder", p.st.Now().Add(24*time.Hour), "try it"),
		p.timers.On(ctx, "statement", jobs.Cron("0 0 9 1 * *", "Europe/Paris"), nil),
	)
}

// list cancels the reminder and names the timers that are left.
func (p *plan) list(ctx context.Context, _ struct{}) ([]string, error) {
	was, err := p.timers.Cancel(ctx, "reminder")
	if err != nil {
		return nil, err
	}
	fmt.Println("the reminder was set:", was)
	s, ok, err := p.timers.Get(ctx, "statement")
	if err != nil {
		return nil, err
	}
	fmt.Println("the statement:", ok, s.Schedule)
	all, err := p.timers.All(ctx, timers.Timer{}, 1) // the earliest, and then those behind it
	if err != nil {
		return nil, err
	}
	more, err := p.timers.All(ctx, all[0], 10)
	var names []string
	for _, t := range append(all, more...) {
		names = append(names, t.Name)
	}
	return names, err
}

// An object has as many named timers as it wants.
func Example() {
	plans := object.Define("plan", loadPlan, timers.ClassOptions(object.ClassOptions{}))
	begin := object.Handle(plans, "begin", (*plan).begin)
	list := object.Handle(plans, "list", (*plan).list)

	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, plans)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := begin.Call(ctx, host, "anna", time.Minute); err != nil {
		log.Fatal(err)
	}
	names, err := list.Call(ctx, host, "anna", struct{}{})
	fmt.Println(names, err)
	fmt.Println(host.Shutdown(ctx))
	// Output:
	// the reminder was set: true
	// the statement: true cron 0 0 9 1 * * Europe/Paris
	// [trial ends statement] <nil>
	// <nil>
}
