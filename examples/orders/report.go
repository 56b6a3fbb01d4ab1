package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// report is the result of a run. The flag -json prints it as JSON.
type report struct {
	Orders int `json:"orders"`
	verdict
	Kills       int     `json:"kills"`        // of the worker
	ServerKills int     `json:"server_kills"` // of the payment server
	Faults      int     `json:"faults"`       // requests that the payment server mistreated
	Repeats     int     `json:"repeats"`      // requests that it had answered before
	Seconds     float64 `json:"seconds"`
}

// report compares the orders with the book.
func (c *campaign) report(took time.Duration) (report, error) {
	book, _, err := readBook(c.dir.book())
	if err != nil {
		return report{}, err
	}
	return report{
		Orders: c.s.orders, verdict: judge(c.tally.results(c.s.orders, book)),
		Kills: c.kills[worker], ServerKills: c.kills[paymentServer],
		Faults: c.tally.faults, Repeats: c.tally.repeats, Seconds: took.Round(time.Millisecond).Seconds(),
	}, nil
}

// sound reports whether nothing is wrong or lost.
func (r *report) sound() bool { return r.Wrong == 0 && r.Lost == 0 }

// problemsMax is how many problems are told.
const problemsMax = 20

// print writes the result to stdout: in sentences, or as one line of JSON. The problems go
// to stderr.
func (r *report) print(stdout, stderr io.Writer, asJSON bool) error {
	for i, p := range r.problems {
		if i == problemsMax {
			fmt.Fprintf(stderr, "- and %d more\n", len(r.problems)-i)
			break
		}
		fmt.Fprintf(stderr, "- %s\n", p)
	}
	if asJSON {
		return json.NewEncoder(stdout).Encode(r)
	}
	_, err := fmt.Fprintf(stdout, `Orders: %d, of which %d were shipped, and %d were refused and refunded.
Book of the payment server: %d charges, %d refunds.
Killed with SIGKILL: the worker %d times, the payment server %d times.
Requests: %d failed or came late on purpose; %d were repeats, answered from the book.
Wrong: %d. Lost: %d. Took %.1f s.
`, r.Orders, r.Shipped, r.Refunded, r.Charges, r.Refunds, r.Kills, r.ServerKills, r.Faults, r.Repeats, r.Wrong, r.Lost, r.Seconds)
	return err
}
