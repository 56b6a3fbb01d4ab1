package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// workflows is a server of workflows of empty steps.
type workflows struct {
	client
	next atomic.Int64 // the number of the next workflow
}

// Run implements steps.System.
func (w *workflows) Run(ctx context.Context, n int) error {
	url := strings.ReplaceAll(*run, "{id}", strconv.FormatInt(w.next.Add(1), 10))
	_, err := w.do(ctx, *method, url, strconv.Itoa(n))
	return err
}

// Alone implements steps.System.
func (w *workflows) Alone(ctx context.Context, n int) (lat measure.Quantiles, err error) {
	if _, err := w.do(ctx, http.MethodPost, *timer, ""); err != nil {
		return lat, err
	}
	if err := w.Run(ctx, n); err != nil {
		return lat, err
	}
	answer, err := w.do(ctx, http.MethodGet, *timer, "")
	if err != nil {
		return lat, err
	}
	return lat, json.Unmarshal(answer, &lat)
}
