package journeys

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
)

// reminder is an object with an alarm.
type reminder struct {
	st    *object.State
	fired chan<- string
}

func (r *reminder) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	var text string
	_, err := r.st.Storage().GetInto(ctx, "text", &text)
	r.fired <- text
	return err
}

// later is a clock that is two hours ahead.
type later struct{ seam.Clock }

func (l later) Now() time.Time { return l.Clock.Now().Add(2 * time.Hour) }

// reminders is a program with reminders, behind a server.
type reminders struct {
	host  *object.Host
	url   string
	set   func(name, text string, at time.Time) error
	fired chan string
}

func startReminders(t *testing.T, clock seam.Clock) *reminders {
	t.Helper()
	p := &reminders{fired: make(chan string, 10)}
	class := object.Define("reminder", func(_ context.Context, st *object.State) (*reminder, error) { return &reminder{st, p.fired}, nil })
	type reminding struct {
		Text string
		At   time.Time
	}
	set := object.Handle(class, "set", func(r *reminder, ctx context.Context, a reminding) (struct{}, error) {
		return struct{}{}, errors.Join(r.st.Storage().Put(ctx, "text", a.Text), r.st.SetAlarm(ctx, a.At))
	})
	var err error
	p.host, err = object.Open(object.Options{Dir: t.TempDir(), Seams: seam.Seams{Clock: clock}}, server.Definitions(class)...)
	must(t, err)
	p.set = func(name, text string, at time.Time) error {
		_, err := set.Call(t.Context(), p.host, name, reminding{text, at})
		return err
	}
	srv, err := server.New(p.host, server.Config{Auth: auth.Insecure()})
	must(t, err)
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	p.url = web.URL
	return p
}

// Journey 6: an object moves to another program. A person exports it, imports it there with its alarm, and deletes it
// here. The alarm fires there, once, and never here.
func TestObjectMoves(t *testing.T) {
	here, there := startReminders(t, nil), startReminders(t, later{seam.Seams{}.WithDefaults().Clock})
	must(t, here.set("anna", "call the bank", here.host.Seams().Clock.Now().Add(time.Hour)))
	file := filepath.Join(t.TempDir(), "anna.ndjson")

	has(t, holdfast(t, 0, "--addr", here.url, "export", "reminder/anna", file), "reminder/anna is in")
	has(t, holdfast(t, 0, "--addr", there.url, "import", file, "--alarms"), "reminder", "anna")
	if text := <-there.fired; text != "call the bank" {
		t.Errorf("the alarm has %q", text)
	}
	has(t, holdfast(t, 4, "--addr", there.url, "import", file), "exists")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, here.url+"/v1/objects/reminder/anna", nil)
	must(t, err)
	a, err := http.DefaultClient.Do(r)
	must(t, err, a.Body.Close())
	if a.StatusCode != http.StatusNoContent {
		t.Errorf("the delete: %s", a.Status)
	}
	has(t, holdfast(t, 4, "--addr", here.url, "export", "reminder/anna"), "no")

	// A call waits for the turn of the alarm.
	must(t, there.set("anna", "", there.host.Seams().Clock.Now().Add(100*time.Hour)))
	in, err := there.host.Inspect(t.Context(), storage.ID{Class: "reminder", Name: "anna"})
	must(t, err, here.host.Shutdown(t.Context()), there.host.Shutdown(t.Context()))
	if in.Alarm == nil || in.Alarm.Attempts != 0 || len(there.fired)+len(here.fired) != 0 {
		t.Errorf("the alarm is %+v, and has fired %d times more there and %d times here", in.Alarm, len(there.fired), len(here.fired))
	}
}
