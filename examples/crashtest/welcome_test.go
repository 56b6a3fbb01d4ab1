package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/jobs/workflow/workflowtest"
)

// docs/TESTING.md shows code of this file. A test of internal/lint compares the two.

// post sends mails. It recognizes a key that it has seen before; a mail without a key is new.
type post struct {
	mails []string
	seen  map[string]bool
}

func (p *post) send(key, text string) {
	if key == "" || !p.seen[key] {
		p.mails = append(p.mails, text)
	}
	p.seen[key] = true
}

func (p *post) empty() { p.mails, p.seen = nil, make(map[string]bool) }

// newWelcome welcomes a customer, and asks a week later how it was. It has a bug.
func newWelcome(p *post) *workflow.Workflow[string, string] {
	welcome := workflow.New[string, string]("welcome", workflow.Config{})
	welcome.Func(func(ctx *workflow.Context, name string) (string, error) {
		p.send("", "Welcome, "+name)
		if err := workflow.Sleep(ctx, 7*24*time.Hour); err != nil {
			return "", err
		}
		return workflow.Step(ctx, "ask", func(ctx context.Context) (string, error) {
			p.send(workflow.Key(ctx), "How was it, "+name+"?")
			return "asked", nil
		})
	})
	return welcome
}

// newCuredWelcome is the same with its first mail in a step.
func newCuredWelcome(p *post) *workflow.Workflow[string, string] {
	welcome := workflow.New[string, string]("welcome", workflow.Config{})
	welcome.Func(func(ctx *workflow.Context, name string) (string, error) {
		_, err := workflow.Step(ctx, "greet", func(ctx context.Context) (string, error) {
			p.send(workflow.Key(ctx), "Welcome, "+name)
			return "greeted", nil
		})
		if err != nil {
			return "", err
		}
		if err := workflow.Sleep(ctx, 7*24*time.Hour); err != nil {
			return "", err
		}
		return workflow.Step(ctx, "ask", func(ctx context.Context) (string, error) {
			p.send(workflow.Key(ctx), "How was it, "+name+"?")
			return "asked", nil
		})
	})
	return welcome
}

// testWelcome is the unit test of the workflow.
func testWelcome(t testing.TB, newWelcome func(p *post) *workflow.Workflow[string, string]) {
	var p post
	out, err := workflowtest.Run(t, newWelcome(&p), "anna", workflowtest.Outside(p.empty, func() any { return p.mails }))
	if err != nil || out != "asked" || len(p.mails) != 2 {
		t.Fatalf("%q, %v, mails %v", out, err, p.mails)
	}
}

// The draft is found, with the text that the page shows, and the cure passes.
func TestWelcomeOutsideOfAStep(t *testing.T) {
	var r recorder
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		testWelcome(&r, newWelcome)
	}()
	<-ended
	page, err := os.ReadFile("../../docs/TESTING.md")
	if err != nil {
		t.Fatal(err)
	}
	said, _, _ := strings.Cut(r.said, "\n\nTIMELINE")
	if said == "" || !strings.Contains(string(page), "```\n"+said+"\n```") {
		t.Errorf("docs/TESTING.md does not show this failure:\n%s", said)
	}
	testWelcome(t, newCuredWelcome)
}

// welcomed is a scenario: a customer is welcomed, and asked a week later.
func welcomed(newWelcome func(p *post) *workflow.Workflow[string, string]) harness.Scenario {
	return func(s *harness.Sim) {
		var p post
		p.empty()
		welcome := newWelcome(&p)
		s.Host(welcome)
		s.OK(s.Retry(func() error {
			_, err := welcome.Start(s.Context(), s, "1", "anna")
			return err
		}))
		s.Advance(7*24*time.Hour + 5*time.Minute)
	}
}

// newDatedWelcome is a workflow that cannot repeat: the name of its step has the day.
func newDatedWelcome(s *harness.Sim) func(p *post) *workflow.Workflow[string, string] {
	return func(p *post) *workflow.Workflow[string, string] {
		welcome := workflow.New[string, string]("welcome", workflow.Config{})
		welcome.Func(func(ctx *workflow.Context, name string) (string, error) {
			_, err := workflow.Step(ctx, "greet on "+s.Now().Format(time.DateOnly), func(ctx context.Context) (string, error) {
				p.send(workflow.Key(ctx), "Welcome, "+name)
				return "greeted", nil
			})
			if err != nil {
				return "", err
			}
			return "asked", workflow.Sleep(ctx, 7*24*time.Hour)
		})
		return welcome
	}
}

// A crash test of a workflow has NoStuck: the run that cannot repeat passes each other check.
func TestWelcomeSurvivesEveryCrash(t *testing.T) {
	scenario := welcomed(newCuredWelcome)
	harness.Exhaust(t, scenario, harness.NoLostAck, harness.NeverOrphaned, harness.NoStuck, harness.OneEnd)

	dated := func(s *harness.Sim) { welcomed(newDatedWelcome(s))(s) }
	harness.Exhaust(t, dated, harness.NoLostAck, harness.NeverOrphaned, harness.Budget(100))
	_, err := harness.Explore(dated, harness.NoStuck)
	if err == nil || !strings.Contains(err.Error(), "NoStuck: welcome/1 is stuck") {
		t.Errorf("a run that cannot repeat: %v", err)
	}
}
