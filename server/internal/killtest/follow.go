package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
)

// follower reads the events of an account and comes back where it was.
type follower struct {
	*record
	*feed
	place *place
	// leaves says that it also leaves while the program runs, after some events that random draws.
	leaves bool
	random *rand.Rand
}

// errLeft is the end of a stream that its follower has left.
var errLeft = errors.New("the follower has left")

// run follows until the context ends.
func (f *follower) run(ctx context.Context) {
	h := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		at, life, err := f.place.wait(ctx)
		if err != nil {
			return
		}
		switch err := f.connect(ctx, h, at); {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errLeft):
		case f.place.is(life):
			f.strange("the stream of %s ended while the program ran: %v", f.account, err)
			return
		}
	}
}

// connect reads one stream to its end. It never returns nil.
func (f *follower) connect(ctx context.Context, h *http.Client, at string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/v1/objects/account/"+f.account+"/events", nil)
	if err != nil {
		return err
	}
	if n := len(f.events); n > 0 {
		r.Header.Set("Last-Event-ID", strconv.FormatUint(f.events[n-1].seq, 10))
	} else {
		r.URL.RawQuery = "after=0"
	}
	res, err := h.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	f.mu.Lock()
	f.came++
	f.mu.Unlock()
	left := -1
	if f.leaves {
		left = 1 + f.random.IntN(200)
	}
	return f.read(bufio.NewReader(res.Body), left)
}

// read reads frames. It leaves after so many events, if left is not negative.
func (f *follower) read(from *bufio.Reader, left int) error {
	for {
		id, kind, data, err := frame(from)
		if err != nil {
			return err
		}
		switch kind {
		case "": // retry or a ping
			continue
		case "event":
		default:
			return fmt.Errorf("a frame %q: %s", kind, data)
		}
		e, err := parse(id, data)
		if err != nil {
			return err
		}
		f.saw(f.feed, e)
		if left--; left == 0 {
			return errLeft
		}
	}
}

// frame reads one whole frame: a part of one at the end of a stream is dropped, as browsers do.
func frame(from *bufio.Reader) (id, kind, data string, err error) {
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return "", "", "", err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "":
			if line == "\n" {
				return id, kind, data, nil
			}
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			data = value
		}
	}
}

// parse reads the frame of an event, whose id on the wire must be its number.
func parse(id, data string) (event, error) {
	var v struct {
		Seq  uint64 `json:"seq"`
		Data change `json:"data"`
	}
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		return event{}, fmt.Errorf("the event %s: %w", data, err)
	}
	if id != strconv.FormatUint(v.Seq, 10) {
		return event{}, fmt.Errorf("event %d has the id %q", v.Seq, id)
	}
	return event{v.Seq, v.Data}, nil
}
