package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// bank moves money outside of the program. A call with a key that was used before
// returns the first result and moves nothing.
type bank interface {
	charge(ctx context.Context, key string, o order) (number int, err error)
	refund(ctx context.Context, key string, o order, number int) error
}

// httpBank is the payment server as its clients see it.
type httpBank struct {
	address string // host and port
	client  *http.Client
}

// patience is how long a client waits for an answer.
const patience = 500 * time.Millisecond

func newHTTPBank(address string) *httpBank {
	return &httpBank{address, &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

func (b *httpBank) charge(ctx context.Context, key string, o order) (int, error) {
	return b.post(ctx, "/charge", key, request{Order: o.Number, Cents: o.Cents})
}

func (b *httpBank) refund(ctx context.Context, key string, o order, number int) error {
	_, err := b.post(ctx, "/refund", key, request{Order: o.Number, Of: number})
	return err
}

// post sends a request. An answer 4xx is Permanent, because a repeat would get it again.
// Any other error leaves open whether the request was done, so it has to be repeated with
// the same key.
func (b *httpBank) post(ctx context.Context, path, key string, in request) (int, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.address+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set(keyHeader, key)
	reply, err := b.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, 4<<10))
	if err != nil {
		return 0, err
	}
	if reply.StatusCode != http.StatusOK {
		err := fmt.Errorf("payment server: %s: %s", reply.Status, strings.TrimSpace(string(text)))
		if reply.StatusCode < http.StatusInternalServerError {
			return 0, object.Permanent(err)
		}
		return 0, err
	}
	var a answer
	return a.Number, json.Unmarshal(text, &a)
}
