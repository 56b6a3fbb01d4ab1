package server

import (
	"context"
	"net/http"

	"github.com/holdfast-dev/holdfast/storage"
)

// healthRoutes are the routes of a supervisor and of a load balancer. Anyone may use them, so
// they tell a status and nothing else.
func (s *Server) healthRoutes() []route {
	return []route{
		{
			method: http.MethodGet, pattern: "/livez", access: open,
			help:   "200: the process answers. A failed store does not change it, because a restart mends no disk.",
			handle: func(x *exchange) error { return x.probe(true) },
		},
		{
			method: http.MethodGet, pattern: "/readyz", access: open,
			help:   "200: calls are taken. 503: the store has failed, or the host or the server is ending.",
			handle: func(x *exchange) error { return x.probe(x.ready()) },
		},
	}
}

// probe answers with a status alone.
func (x *exchange) probe(fine bool) error {
	status := http.StatusOK
	if !fine {
		status = http.StatusServiceUnavailable
	}
	x.w.Header().Set("Content-Length", "0")
	x.w.WriteHeader(status)
	return nil
}

// probed is an object that need not exist: the host tells about itself beside it.
var probed = storage.ID{Class: "holdfast.probe", Name: "readyz"}

// ready reports whether calls are taken. It reads no row and waits for nothing.
func (s *Server) ready() bool {
	if s.serving.unready.Load() {
		return false
	}
	e, err := s.host.Explain(context.Background(), probed)
	return err == nil && !e.Closing && e.Failed == ""
}
