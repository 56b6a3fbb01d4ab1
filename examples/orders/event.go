package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// event is a line of JSON that a child process writes on its standard output.
type event struct {
	Kind    string  `json:"event"`
	Order   int     `json:"order,omitempty"`
	Outcome outcome `json:"outcome,omitempty"` // of evEnded
	Charge  int     `json:"charge,omitempty"`  // of evEnded and shipped: the number of the charge, as the receipt has it
	Item    string  `json:"item,omitempty"`    // of evStock
	Stock   stock   `json:"stock,omitzero"`    // of evStock
}

// The kinds of events.
const (
	evReady   = "ready"   // the process does its work
	evRepeat  = "repeat"  // of the payment server: it answered a request again
	evFault   = "fault"   // of the payment server: it mistreated a request
	evCharged = "charged" // of the worker: the payment server has answered a charge
	evEnded   = "ended"   // of the worker: the workflow of an order has ended
	evStock   = "stock"   // of the worker, at its end: the stock of an item
)

// teller returns a function that writes events, which any goroutine may call.
func teller(w io.Writer) func(event) {
	var mu sync.Mutex
	lines := json.NewEncoder(w)
	return func(e event) {
		mu.Lock()
		defer mu.Unlock()
		_ = lines.Encode(e) // an error means that the program has gone: then standard input ends too
	}
}

// readEvents passes on each event, until the end.
func readEvents(r io.Reader, tell func(event)) (err error) {
	readLines(r, func(line []byte) {
		var e event
		if bad := json.Unmarshal(line, &e); bad != nil && err == nil {
			err = fmt.Errorf("it wrote %q, which is no event: %w", line, bad)
		} else if bad == nil {
			tell(e)
		}
	})
	return err
}

// readLines passes on each whole line, until the end. A kill may cut off the last one.
func readLines(r io.Reader, whole func(line []byte)) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		whole(line)
	}
}
