// Command httpload measures a server over HTTP: of counters and alarms, or of workflows.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/queue"
	"github.com/holdfast-dev/holdfast/bench/peers/internal/steps"
)

var (
	method    = flag.String("method", http.MethodGet, "of the requests")
	increment = flag.String("increment", "", "URL that adds one to counter {i}")
	arm       = flag.String("arm", "", "URL that arms the alarm of {i}, for {due} in ms of Unix time or in {delay} ms")
	body      = flag.String("body", "", "of the requests that arm, with the same in braces")
	run       = flag.String("run", "", "URL that executes workflow {id} with the number of steps in the body, and answers when it is done; given, only workflows are measured")
	timer     = flag.String("timer", "", "URL that begins the record of the latencies of steps when it is posted to, and answers them")
	late      = flag.String("late", "", `URL that answers {"n": fired}, and with ?all how late each was, in ms`)
)

// warmup runs before the measurement, because servers compile and open files at first.
const warmup = time.Second

// servers are the processes of the server.
var servers steps.Processes

func main() {
	flag.Var(&servers, "servers", "process ids of the server, with commas, whose processor time counts for workflows")
	queue.Main(func(ctx context.Context, l queue.Load, r *figure.Reporter) error {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, max(queue.Callers, l.Runs)
		if *run != "" {
			w := &workflows{client: client{http.Client{Transport: transport}}}
			return steps.Measure(ctx, w, l, servers, r)
		}
		c := &client{http.Client{Transport: transport, Timeout: time.Minute}}
		for _, keys := range []int{1, 1000} {
			if err := c.increments(ctx, keys, l.For, r); err != nil {
				return err
			}
		}
		return c.alarms(ctx, l, r)
	})
}

type client struct{ http.Client }

// do sends a request and reads the whole answer.
func (c *client) do(ctx context.Context, method, url, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() // it was only read
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s answers %s: %s", url, res.Status, bytes.TrimSpace(answer))
	}
	return answer, err
}

func (c *client) increments(ctx context.Context, keys int, d time.Duration, r *figure.Reporter) error {
	urls := make([]string, keys)
	for i := range urls {
		urls[i] = strings.ReplaceAll(*increment, "{i}", strconv.Itoa(i))
	}
	op := func(i int) error {
		_, err := c.do(ctx, *method, urls[i%keys], "")
		return err
	}
	if err := measure.Each(ctx, queue.Callers, keys, op); err != nil {
		return err
	}
	if _, err := measure.Closed(ctx, queue.Callers, min(d, warmup), op); err != nil {
		return err
	}
	run, err := measure.Closed(ctx, queue.Callers, d, op)
	if err != nil {
		return err
	}
	return r.Add("increments", keys, run.PerSecond())
}

func (c *client) alarms(ctx context.Context, l queue.Load, r *figure.Reporter) error {
	due := time.Now().Add(l.Lead)
	err := measure.Each(ctx, queue.Callers, l.Alarms, func(i int) error {
		fill := strings.NewReplacer("{i}", "alarm"+strconv.Itoa(i), "{due}", strconv.FormatInt(due.UnixMilli(), 10),
			"{delay}", strconv.FormatInt(max(0, time.Until(due).Milliseconds()), 10))
		_, err := c.do(ctx, *method, fill.Replace(*arm), fill.Replace(*body))
		return err
	})
	if err != nil {
		return err
	}
	if time.Now().After(due) {
		return fmt.Errorf("arming %d alarms takes longer than %v: give them more time", l.Alarms, l.Lead)
	}
	ms, err := c.fired(ctx, l.Alarms, due)
	if err != nil {
		return err
	}
	lateness, last := measure.NewLatencies(), time.Duration(0)
	for _, v := range ms {
		d := time.Duration(v * 1e6)
		lateness.Record(d)
		last = max(last, d)
	}
	if err := r.Add("alarms", l.Alarms, last.Seconds()); err != nil {
		return err
	}
	return r.Add("late", l.Alarms, lateness.Quantiles().P99/1e6)
}

// fired waits until n alarms have fired and returns how late each was.
func (c *client) fired(ctx context.Context, n int, due time.Time) (ms []float64, err error) {
	const longest = 2 * time.Minute
	ctx, cancel := context.WithDeadline(ctx, due.Add(longest))
	defer cancel()
	for {
		answer, err := c.do(ctx, http.MethodGet, *late, "")
		if err != nil {
			return nil, err
		}
		var count struct{ N int }
		if err := json.Unmarshal(answer, &count); err != nil {
			return nil, err
		}
		if count.N >= n {
			break
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d alarms have fired: %w", count.N, n, ctx.Err())
		}
	}
	answer, err := c.do(ctx, http.MethodGet, *late+"?all", "")
	if err != nil {
		return nil, err
	}
	return ms, json.Unmarshal(answer, &ms)
}
