package workload

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Gauge is the sum of the values of one of the host's metrics over all classes.
func (h *Host) Gauge(name string) (sum float64) {
	all := make(chan prometheus.Metric)
	go func() {
		h.Collector().Collect(all)
		close(all)
	}()
	for m := range all {
		var v dto.Metric
		if strings.Contains(m.Desc().String(), `"`+name+`"`) && m.Write(&v) == nil {
			sum += v.GetGauge().GetValue()
		}
	}
	return sum
}

// Live is how many objects are in memory.
func (h *Host) Live() float64 { return h.Gauge("holdfast_objects_live") }

// Evicted waits until no object is in memory.
func (h *Host) Evicted(ctx context.Context) error {
	for h.Live() > 0 {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
