package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/server/internal/client"
	"github.com/holdfast-dev/holdfast/storage"
)

// live is the source of a server.
type live struct{ api *client.Client }

func (l *live) classes(ctx context.Context) ([]class, error) {
	var list struct{ Classes []struct{ Name string } }
	if err := l.api.Get(ctx, "/v1/classes", nil, &list); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Classes))
	for i, c := range list.Classes {
		names[i] = c.Name
	}
	return counted(ctx, names, l.objects)
}

func (l *live) objects(ctx context.Context, class string, o object.ObjectsOptions) ([]object.ObjectInfo, error) {
	query := client.Query("label", o.Label, "prefix", o.Prefix, "limit", strconv.Itoa(o.Limit))
	if o.After != "" {
		query.Set("after", client.Cursor(o.After))
	}
	if o.Sizes {
		query.Set("size", "1")
	}
	var page struct{ Objects []object.ObjectInfo }
	err := l.api.Get(ctx, client.Path("v1", "objects", class), query, &page)
	return page.Objects, err
}

// of is the parameters that name an object.
func of(id storage.ID) []string { return []string{"class", id.Class, "name", id.Name} }

// inspection returns the stored state of an object as the server tells it. The letters lack their numbers.
func (l *live) inspection(ctx context.Context, id storage.ID) (in object.Inspection, err error) {
	err = l.api.Get(ctx, "/v1/object", client.Query(of(id)...), &in)
	for i := range in.Keys {
		whole(&in.Keys[i])
	}
	return in, err
}

// whole puts the bytes of a key that is no UTF-8 in the place of what JSON has made of them.
func whole(k *object.KeyInfo) {
	if len(k.KeyBytes) > 0 {
		k.Key = string(k.KeyBytes)
	}
}

func (l *live) inspect(ctx context.Context, id storage.ID, o object.KeysOptions) (object.Inspection, error) {
	in, err := l.inspection(ctx, id)
	if err != nil {
		return in, err
	}
	if len(in.DeadLetters) > 0 {
		found, err := l.letters(ctx, object.DeadLettersOptions{Class: id.Class, Name: id.Name, Limit: object.MaxPage}, "")
		if err != nil {
			return in, err
		}
		in.DeadLetters = nil
		for _, d := range found.Letters {
			d.DeadLetter.ID, d.DeadLetter.Seq = d.ID, d.Seq
			in.DeadLetters = append(in.DeadLetters, d.DeadLetter)
		}
	}
	plain := !o.Values && o.Prefix == "" && o.Start == "" && len(in.Keys) <= o.Limit
	if plain { // a viewer may see these
		return in, nil
	}
	return in, l.keys(ctx, &in, o)
}

// keys puts the keys that the options choose in the place of those of the inspection.
func (l *live) keys(ctx context.Context, in *object.Inspection, o object.KeysOptions) error {
	var page struct {
		Keys []struct {
			object.KeyInfo
			Value      json.RawMessage `json:"value"`
			ValueBytes []byte          `json:"valueBytes"`
		}
		Next string
	}
	query := client.Query(append(of(in.ID), "prefix", o.Prefix, "limit", strconv.Itoa(o.Limit))...)
	if o.Start != "" {
		query.Set("after", client.Cursor(o.Start))
	}
	if err := l.api.Get(ctx, "/v1/object/keys", query, &page); err != nil {
		return err
	}
	in.Keys, in.NextKeyBytes = nil, nil
	for _, k := range page.Keys {
		if o.Values {
			k.KeyInfo.Value = append(k.Value, k.ValueBytes...)
		}
		whole(&k.KeyInfo)
		in.Keys = append(in.Keys, k.KeyInfo)
	}
	next, err := client.At(page.Next)
	if err != nil {
		return fmt.Errorf("%w: the next page: %w", client.ErrUnreachable, err)
	}
	if in.NextKey = next; !utf8.ValidString(next) {
		in.NextKeyBytes = []byte(next)
	}
	return nil
}

// streamed is an event of a stream.
type streamed struct {
	Class, Name string
	Seq         uint64
	At          time.Time
	Kind        string
	Data        json.RawMessage
	DataBytes   []byte
}

// event is the event as a directory has it.
func (e *streamed) event() object.Event {
	return object.Event{Seq: e.Seq, At: e.At, Kind: e.Kind, Data: append(e.Data, e.DataBytes...)}
}

// events reads the stored events of an object from its stream, up to the newest that there is now. Those of
// a job have no such stream, so they are the newest 20, without their data.
func (l *live) events(ctx context.Context, id storage.ID, after uint64, limit int) ([]object.Event, error) {
	in, err := l.inspection(ctx, id)
	if err != nil {
		return nil, err
	}
	var found []object.Event
	if len(in.Events) == 0 || in.Events[0].Seq <= after {
		return nil, nil
	}
	err = l.stored(ctx, id, after, func(e object.Event) error {
		if e.Seq > after {
			found = append(found, e)
		}
		if len(found) == limit || e.Seq >= in.Events[0].Seq {
			return client.ErrEnough
		}
		return nil
	})
	var p *client.Problem
	if errors.As(err, &p) && p.Type == "unknown-class" {
		return newest(in.Events, after, limit), nil
	}
	return found, err
}

// newest are the events of an inspection behind a number, the oldest first.
func newest(infos []object.EventInfo, after uint64, limit int) (found []object.Event) {
	for _, e := range slices.Backward(infos) {
		if e.Seq > after && len(found) < limit {
			found = append(found, object.Event{Seq: e.Seq, At: e.At, Kind: e.Kind})
		}
	}
	return found
}

// errReset says that the event at which a stream was to begin is not kept any more.
var errReset = errors.New("events between were not kept")

// stored streams the events of an object behind a number, and all that are kept if that one is not.
func (l *live) stored(ctx context.Context, id storage.ID, after uint64, each func(object.Event) error) error {
	err := l.stream(ctx, "/v1/object/events", append(of(id), "after", strconv.FormatUint(after, 10)), func(_ string, e *streamed) error { return each(e.event()) })
	if errors.Is(err, errReset) && after > 0 {
		return l.stored(ctx, id, 0, each)
	}
	return err
}

// stream gives the events of a stream with their places to a function, until the server ends it.
func (l *live) stream(ctx context.Context, path string, pairs []string, each func(place string, e *streamed) error) error {
	bye := errors.New("it ended")
	err := l.api.Events(ctx, path, client.Query(pairs...), func(f client.Frame) error {
		switch f.Event {
		case "event":
			var e streamed
			if err := json.Unmarshal([]byte(f.Data), &e); err != nil {
				return fmt.Errorf("%w: an event: %w", client.ErrUnreachable, err)
			}
			if err := each(f.ID, &e); err != nil {
				bye = nil
				return err
			}
		case "reset":
			return errReset
		case "bye":
			return fmt.Errorf("%w: %w: the server has closed it: %s", client.ErrUnreachable, client.ErrCut, shown(f.Data))
		}
		return nil
	})
	if err == nil && bye != nil {
		err = fmt.Errorf("%w: %w", client.ErrUnreachable, client.ErrCut)
	}
	return err
}

// The time between two tries to come back to a server.
const (
	firstPause = 200 * time.Millisecond
	mostPause  = 10 * time.Second
)

// follow gives the events of an object to a function as they happen, until ctx ends. Those of a plain object
// begin behind a number; those of a job begin now, because a server keeps no stream of them. If the stream is cut, follow
// says so to cut and comes back to its place.
func (l *live) follow(ctx context.Context, id storage.ID, after uint64, each func(object.Event) error, cut func(error)) error {
	f := following{live: l, id: id, after: after, each: each}
	connected, pause := false, firstPause
	for {
		err := f.once(ctx)
		switch {
		case errors.Is(err, client.ErrCut):
			connected, pause = true, firstPause
		case errors.Is(err, errReset) && f.place != "":
			f.place = "" // it goes on from now
		case !errors.Is(err, client.ErrUnreachable) || !connected:
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		cut(err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, mostPause)
	}
}

// following is how far a follow is: behind an event of a plain object, or at a place in the stream of a class of jobs.
type following struct {
	*live
	id    storage.ID
	after uint64
	place string
	each  func(object.Event) error
}

// once follows until the stream ends.
func (f *following) once(ctx context.Context) error {
	err := f.stored(ctx, f.id, f.after, func(e object.Event) error {
		f.after = e.Seq
		return f.each(e)
	})
	var p *client.Problem
	if !errors.As(err, &p) || p.Type != "unknown-class" {
		return err
	}
	pairs := []string{"name", f.id.Name}
	if f.place != "" {
		pairs = append(pairs, "after", f.place)
	}
	return f.stream(ctx, client.Path("v1", "events", f.id.Class), pairs, func(place string, e *streamed) error {
		f.place = place
		if e.Name != f.id.Name { // the filter is a prefix
			return nil
		}
		return f.each(e.event())
	})
}

func (l *live) jobs(ctx context.Context, o admin.JobsOptions) (page admin.JobPage, err error) {
	err = l.api.Get(ctx, "/v1/jobs", client.Query("class", o.Class, "label", o.Label, "prefix", o.Prefix, "after", o.After, "limit", strconv.Itoa(o.Limit)), &page)
	return page, err
}

func (l *live) tasks(ctx context.Context, pool string, o workerpool.TasksOptions) (page workerpool.TaskPage, err error) {
	states := make([]string, len(o.States))
	for i, s := range o.States {
		states[i] = s.String()
	}
	query := client.Query("status", strings.Join(states, ","), "key", o.Key, "after", o.After, "limit", strconv.Itoa(o.Limit))
	if o.Queue != nil {
		query.Set("queue", *o.Queue)
	}
	err = l.api.Get(ctx, client.Path("v1", "pools", pool, "tasks"), query, &page)
	return page, err
}

func (l *live) letters(ctx context.Context, o object.DeadLettersOptions, after string) (found letters, err error) {
	query := client.Query("class", o.Class, "name", o.Name, "kind", o.Kind, "reason", o.Reason, "error", o.Error,
		"since", rfc(o.DiedSince), "before", rfc(o.DiedBefore), "after", after, "limit", strconv.Itoa(o.Limit))
	err = l.api.Get(ctx, "/v1/dead", query, &found)
	return found, err
}

// rfc is a time as a parameter has it; empty for none.
func rfc(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func (l *live) letter(ctx context.Context, id storage.ID, seq uint64) (object.DeadLetter, error) {
	var d letter
	err := l.api.Get(ctx, "/v1/letter", client.Query(append(of(id), "seq", strconv.FormatUint(seq, 10))...), &d)
	d.DeadLetter.ID, d.DeadLetter.Seq = d.ID, d.Seq
	return d.DeadLetter, err
}

func (l *live) why(ctx context.Context, id storage.ID) (a why.Answer, err error) {
	err = l.api.Get(ctx, "/v1/object/why", client.Query(of(id)...), &a)
	return a, err
}

func (l *live) whyTask(ctx context.Context, pool string, id workerpool.TaskID) (a why.Answer, err error) {
	err = l.api.Get(ctx, client.Path("v1", "pools", pool, "tasks", id.String(), "why"), nil, &a)
	return a, err
}

func (l *live) whyAll(ctx context.Context) (o why.Overview, err error) {
	err = l.api.Get(ctx, "/v1/why", nil, &o)
	return o, err
}

// maxRecoveries is how many lines a report has at most.
const maxRecoveries = object.MaxPage

// recovered is the report of the recoveries since the start. Below the role reader it has no lines.
func (l *live) recovered(ctx context.Context) (recovery.Report, error) {
	var report recovery.Report
	err := l.api.Get(ctx, "/v1/recoveries", client.Query("lines", "1", "limit", strconv.Itoa(maxRecoveries)), &report)
	var p *client.Problem
	if errors.As(err, &p) && p.Status == http.StatusForbidden {
		err = l.api.Get(ctx, "/v1/recoveries", nil, &report)
	}
	return report, err
}

// table is the verbs and views of a job type, as the server describes them.
type table struct {
	Class string
	Kind  string
	Verbs []verbs.Description
	Views []verbs.Description
}

// tables are the job types of the server.
func (l *live) tables(ctx context.Context) ([]table, error) {
	var list struct{ Types []table }
	err := l.api.Get(ctx, "/v1/verbs", nil, &list)
	return list.Types, err
}

// isPool reports whether a class is a worker pool. A principal that may not see the tables has a grant for one
// class, and pool says whether its verb is of a pool.
func (l *live) isPool(ctx context.Context, class string, pool bool) (bool, error) {
	all, err := l.tables(ctx)
	var p *client.Problem
	if errors.As(err, &p) && (p.Status == http.StatusForbidden || p.Status == http.StatusNotFound) {
		return pool, nil
	}
	i := slices.IndexFunc(all, func(t table) bool { return t.Class == class })
	if err != nil || i < 0 {
		return pool, err
	}
	return all[i].Kind == "workerpool", nil
}

// do runs a verb on a job, a pool or a task. pool is for a class that the server tells nothing of.
func (l *live) do(ctx context.Context, id storage.ID, verb string, arg []byte, key string, pool bool) ([]byte, error) {
	pool, err := l.isPool(ctx, id.Class, pool)
	if err != nil {
		return nil, err
	}
	r := client.Request{Method: http.MethodPost, Body: arg, Key: key}
	switch {
	case !pool:
		r.Path, r.Query = client.Path("v1", "job", "do", verb), client.Query("job", id.Class, "id", id.Name)
	case id.Name == "":
		r.Path = client.Path("v1", "pools", id.Class, verb)
	default:
		r.Path = client.Path("v1", "pools", id.Class, "tasks", id.Name, verb)
	}
	return l.api.Do(ctx, r)
}

func (l *live) view(ctx context.Context, id storage.ID, view string, arg []byte) ([]byte, error) {
	pool, err := l.isPool(ctx, id.Class, false)
	if err != nil {
		return nil, err
	}
	r := client.Request{Method: http.MethodGet}
	task := client.Path("v1", "pools", id.Class, "tasks", id.Name)
	switch {
	case !pool:
		r.Path = client.Path("v1", "job", "view", view)
		r.Query = client.Query("job", id.Class, "id", id.Name, "arg", string(arg))
	case view == "stats" && id.Name == "":
		r.Path = client.Path("v1", "pools", id.Class, "stats")
	case view == "status" && id.Name != "":
		r.Path = task
	case view == "wait" && id.Name != "":
		return l.wait(ctx, id)
	default:
		return nil, usage("a server shows the views stats of a pool, and status and wait of a task; tasks ls lists tasks")
	}
	return l.api.Do(ctx, r)
}

// wait waits for the end of a task and returns its result. A task that ends otherwise is an error.
func (l *live) wait(ctx context.Context, id storage.ID) ([]byte, error) {
	for {
		var st workerpool.Status[json.RawMessage]
		if err := l.api.Get(ctx, client.Path("v1", "pools", id.Class, "tasks", id.Name, "wait"), nil, &st); err != nil {
			return nil, err
		}
		switch st.State {
		case workerpool.Done:
			return st.Result, nil
		case workerpool.Dead:
			why := ""
			if n := len(st.Failures); n > 0 {
				why = st.Failures[n-1].Error
			}
			return nil, &exit{Refused, fmt.Errorf("%w: %s", workerpool.ErrFailed, cmp.Or(quotedOrNone(why), "its error is for the role reader"))}
		case workerpool.Cancelled:
			return nil, &exit{Refused, workerpool.ErrCancelled}
		}
	}
}
