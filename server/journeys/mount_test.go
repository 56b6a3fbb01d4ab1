package journeys

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
)

// reports are the jobs of an application.
var reports = continuous.New(continuous.Config[int]{Name: "report", StartLater: true, Run: func(context.Context, *continuous.Run[int]) error { return nil }})

// app is the web server of an application, with five lines more.
func app(host *object.Host) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the application") })
	srv, err := server.New(host, server.Config{Auth: auth.Insecure(), Jobs: []verbs.Described{reports}})
	if err != nil {
		return nil, err
	}
	mux.Handle("/holdfast/", http.StripPrefix("/holdfast", srv))
	return mux, nil
}

// Journey 1: an application mounts the handler in five lines. A person sees a job of it from the command line, and the
// application answers as before.
func TestMount(t *testing.T) {
	host, err := object.Open(object.Options{Dir: t.TempDir()}, server.Definitions(reports)...)
	must(t, err)
	h, err := app(host)
	must(t, err)
	web := httptest.NewServer(h)
	defer web.Close()
	_, err = reports.Start(t.Context(), host, "daily", 7)
	must(t, err)

	has(t, holdfast(t, 0, "--addr", web.URL+"/holdfast", "jobs", "ls"), "report/daily", "continuous", "running")
	has(t, holdfast(t, 0, "--addr", web.URL+"/holdfast", "why", "report/daily"), "needs-trigger")
	has(t, holdfast(t, 3, "--addr", web.URL, "jobs", "ls"), "not that of a server of Holdfast")

	a, err := http.Get(web.URL + "/")
	must(t, err)
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	must(t, err, host.Shutdown(t.Context()))
	if string(b) != "the application" {
		t.Errorf("the application says %s", b)
	}
}
