package server

import (
	_ "embed"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

// documentRoutes are the routes of documents about the host and the server.
func (s *Server) documentRoutes() []route {
	return []route{
		{method: "GET", pattern: "/v1/health", access: viewer, answer: health{}, handle: (*exchange).health,
			help: "Tell whether the host takes calls, and why not."},
		{method: "GET", pattern: "/metrics", access: viewer, answer: raw{}, handle: (*exchange).showMetrics,
			help: "The metrics of the host and of the server for Prometheus."},
		{method: "GET", pattern: "/openapi.json", access: viewer, answer: raw{}, handle: (*exchange).openAPI,
			help: "This document."},
	}
}

// health is the answer of GET /v1/health.
type health struct {
	OK         bool   `json:"ok"`                // it takes calls, also of turns that write
	Failed     string `json:"failed,omitempty"`  // the error of the store that has ended the host
	Closing    bool   `json:"closing"`           // it is shutting down
	NoSpace    string `json:"noSpace,omitempty"` // why turns that write are refused
	Epoch      uint64 `json:"epoch"`             // of this opening of the store
	Recoveries int    `json:"recoveries"`        // since the opening
	// LastBackup is when the newest backup that is verified was begun. It is not there if there is none, or if it is not
	// known.
	LastBackup time.Time `json:"lastBackup,omitzero"`
}

// anyObject is an object that does not exist. An Explanation of it tells of the host alone.
var anyObject = storage.ID{Class: "holdfast.none", Name: "none"}

func (x *exchange) health() error {
	h, err := x.healthNow()
	if err != nil {
		return err
	}
	return x.json(http.StatusOK, h)
}

func (x *exchange) healthNow() (health, error) {
	e, err := x.host.Explain(x.r.Context(), anyObject)
	if err != nil {
		return health{}, err
	}
	_, recoveries := x.host.Recoveries()
	_, at := x.backups.lastVerified()
	return health{
		OK: e.Failed == "" && !e.Closing && e.NoSpace == "", Failed: e.Failed, Closing: e.Closing, NoSpace: e.NoSpace,
		Epoch: x.host.Epoch(), Recoveries: recoveries, LastBackup: at,
	}, nil
}

// openAPI is the OpenAPI document. A test makes it of the table of routes.
//
//go:embed openapi.json
var openAPI []byte

func (x *exchange) openAPI() error { return x.answer(http.StatusOK, "application/json", openAPI) }
