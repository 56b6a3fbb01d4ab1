package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// caller sends one operation at a time over a connection of its own.
type caller struct {
	*record
	place *place
	done  <-chan struct{} // closes when no new operation is to begin
}

// run sends operations until done closes, and then the one without an answer until it has one.
func (c *caller) run(ctx context.Context) {
	h := &http.Client{Transport: &http.Transport{}}
	defer h.CloseIdleConnections()
	var open *operation
	for {
		if open == nil {
			select {
			case <-c.done:
				return
			default:
				open = c.next()
			}
		} else {
			c.repeat()
		}
		at, life, err := c.place.wait(ctx)
		if err != nil {
			return
		}
		switch err := c.send(ctx, h, at, open); {
		case err == nil:
			open = nil
		case ctx.Err() != nil:
			return
		case c.place.is(life):
			c.strange("%s failed while the program ran: %v", open.key, err)
			return
		}
	}
}

// send sends an operation and records its answer.
func (c *caller) send(ctx context.Context, h *http.Client, at string, o *operation) error {
	body, err := json.Marshal(o.key)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at+"/v1/objects/account/"+o.account+"/call/add", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Idempotency-Key", o.key)
	r.GetBody = nil // package http must not repeat it by itself
	res, err := h.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	var a answer
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d, %s", res.StatusCode, text)
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return err
	}
	c.told(o, a)
	return nil
}
