package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// ErrEnough is returned by a function that wants no more of a stream. The stream ends without an error then.
var ErrEnough = errors.New("enough")

// ErrCut says that an answer has ended before its end. The error matches ErrUnreachable too.
var ErrCut = errors.New("the answer was cut")

// Lines posts a value in JSON and gives each line of the answer to a function, until that returns an error.
func (c *Client) Lines(ctx context.Context, path string, body any, each func(line []byte) error) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.lines(ctx, Request{Method: http.MethodPost, Path: path, Body: raw}, each)
}

// lines gives each line of an answer to a function.
func (c *Client) lines(ctx context.Context, r Request, each func(line []byte) error) error {
	a, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	for in := bufio.NewReader(a.Body); ; {
		line, err := in.ReadBytes('\n')
		switch {
		case err == io.EOF && len(line) == 0:
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w: %w", ErrUnreachable, ErrCut, err)
		}
		if err := each(line); err != nil {
			if errors.Is(err, ErrEnough) {
				return nil
			}
			return err
		}
	}
}

// Frame is a frame of text/event-stream.
type Frame struct{ ID, Event, Data string }

// Events gives each frame of a stream to a function, until that returns an error or the stream ends.
func (c *Client) Events(ctx context.Context, path string, query url.Values, each func(Frame) error) error {
	var f Frame
	return c.lines(ctx, Request{Method: http.MethodGet, Path: path, Query: query, accept: "text/event-stream"}, func(line []byte) error {
		name, value, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			f.ID = value
		case "event":
			f.Event = value
		case "data":
			f.Data += value
		case "":
			done := f
			f = Frame{}
			if value == "" && done.Event != "" { // else it is a comment, or a frame of retry
				return each(done)
			}
			f = done
		}
		return nil
	})
}
