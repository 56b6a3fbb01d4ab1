package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// parcel is the input, state and event of the jobs of these tests.
type parcel struct {
	To    string
	Grams int
}

// sendable is one job of each type.
type sendable struct {
	pool  *workerpool.Pool[parcel, string]
	wide  *workerpool.Pool[parcel, string] // of several partitions
	clock *continuous.Job[parcel]
	heap  *debounce.Job[parcel, none]
	trip  *workflow.Workflow[parcel, string]
}

// A signal and a variable of the workflow trip.
var (
	arrived = workflow.NewSignal[parcel]("arrived")
	place   = workflow.NewVar[string]("place")
)

type none struct{}

func newSendable() *sendable {
	weigh := func(_ context.Context, t *workerpool.Task[parcel]) (string, error) {
		return fmt.Sprint(t.In.To, " ", t.In.Grams), nil
	}
	queues := map[string]int{"mail": 1}
	return &sendable{
		pool: workerpool.New(workerpool.Config[parcel, string]{Name: "pool", Work: weigh, Queues: queues}),
		wide: workerpool.New(workerpool.Config[parcel, string]{Name: "wide", Work: weigh, Queues: queues, Partitions: 3, Webhooks: everyURL{}}),
		clock: continuous.New(continuous.Config[parcel]{
			Name: "clock", Schedule: jobs.Every(time.Hour), StartLater: true,
			Run: func(context.Context, *continuous.Run[parcel]) error { return nil },
		}),
		heap: debounce.New(debounce.Config[parcel, none]{
			Name: "heap", Quiet: time.Hour,
			Flush: func(context.Context, *debounce.Flush[parcel, none]) error { return nil },
		}),
		trip: newTrips(),
	}
}

// everyURL is the Webhooks of a pool of which no task with a URL ends.
type everyURL struct{ workerpool.Webhooks }

func (everyURL) Allow(string) error { return nil }

// newTrips returns a workflow that waits for a signal.
func newTrips() *workflow.Workflow[parcel, string] {
	w := workflow.New[parcel, string]("trip", workflow.Config{Signals: workflow.Signals{arrived}})
	w.Func(func(ctx *workflow.Context, in parcel) (string, error) {
		got, err := arrived.Wait(ctx, 0)
		return in.To + " " + got.To, err
	})
	return w
}

// verb is a verb of a job as a turn calls it.
type verb struct {
	name string
	call func(ctx context.Context, s *sendable, from object.Caller) (answer any, err error)
	want any            // the answer of a call that is sent; nil: the verb needs a real answer
	sent []storedLetter // the messages that it stores
}

// storedLetter is a message in the store.
type storedLetter struct{ to, method, arg string }

var (
	oneTask = workerpool.TaskID{Number: 1}
	parcelA = parcel{"anna", 250}
)

// rich are options of each kind.
var rich = []workerpool.Option{
	workerpool.Key("k"), workerpool.Queue("mail"), workerpool.Priority(5), workerpool.Delay(time.Minute),
	workerpool.At(time.Unix(1e9, 0).UTC()), workerpool.Idempotent("once", time.Hour), workerpool.Unique("only"), workerpool.Webhook("https://example.com/hook"),
}

const richJSON = `{"In":{"To":"anna","Grams":250},"Options":{"Key":"k","Queue":"mail","Priority":5,"Delay":60000000000,` +
	`"At":"2001-09-09T01:46:40Z","Once":"once","OnceFor":3600000000000,"Unique":"only","Webhook":"https://example.com/hook"}}`

// verbs are all verbs of all job types. The bytes of those that can be sent are stored
// format: FORMAT.md shows them.
var verbs = []verb{
	{"workerpool.Enqueue", func(ctx context.Context, s *sendable, from object.Caller) (any, error) {
		return s.pool.Enqueue(ctx, from, parcelA)
	}, workerpool.TaskRef{Sent: true}, []storedLetter{{"pool/0", "enqueue", `{"In":{"To":"anna","Grams":250},"Options":{}}`}}},
	{"workerpool.Enqueue", func(ctx context.Context, s *sendable, from object.Caller) (any, error) {
		return s.wide.Enqueue(ctx, from, parcelA, rich...)
	}, workerpool.TaskRef{Sent: true}, []storedLetter{{"wide/0", "enqueue", richJSON}}},
	{"workerpool.EnqueueBatch", func(ctx context.Context, s *sendable, from object.Caller) (any, error) {
		return s.wide.EnqueueBatch(ctx, from, []workerpool.Item[parcel]{
			{In: parcelA, Options: rich}, {In: parcel{To: "bob"}, Options: []workerpool.Option{workerpool.Key("b")}}, {In: parcelA, Options: rich},
		})
	}, []workerpool.TaskRef{{Sent: true}, {Sent: true}, {Sent: true}}, []storedLetter{
		{"wide/0", "enqueueBatch", "[" + richJSON + "," + richJSON + "]"},
		{"wide/2", "enqueueBatch", `[{"In":{"To":"bob","Grams":0},"Options":{"Key":"b"}}]`},
	}},
	{"workerpool.Cancel", func(ctx context.Context, s *sendable, from object.Caller) (any, error) {
		return s.pool.Cancel(ctx, from, oneTask)
	}, workerpool.Sent, []storedLetter{{"pool/0", "cancel", "1"}}},
	needsAnswer("workerpool.Pause", func(ctx context.Context, s *sendable, from object.Caller) error { return s.pool.Pause(ctx, from) }),
	needsAnswer("workerpool.Resume", func(ctx context.Context, s *sendable, from object.Caller) error { return s.pool.Resume(ctx, from) }),
	needsAnswer("workerpool.Drain", func(ctx context.Context, s *sendable, from object.Caller) error { return s.wide.Drain(ctx, from) }),
	needsAnswer("workerpool.Discard", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.wide.Discard(ctx, from)
		return err
	}),
	needsAnswer("workerpool.Stats", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.wide.Stats(ctx, from)
		return err
	}),
	needsAnswer("workerpool.Status", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.pool.Status(ctx, from, oneTask)
		return err
	}),
	needsAnswer("workerpool.PhaseResult", func(ctx context.Context, s *sendable, from object.Caller) error {
		var result string
		_, err := s.pool.PhaseResult(ctx, from, oneTask, "pack", &result)
		return err
	}),
	needsAnswer("workerpool.PhaseResults", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.pool.PhaseResults(ctx, from, oneTask)
		return err
	}),
	needsAnswer("workerpool.Wait", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.pool.Wait(ctx, from, oneTask)
		return err
	}),
	needsAnswer("workerpool.DeadLetters", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.pool.DeadLetters(ctx, from, workerpool.TaskID{}, 1)
		return err
	}),
	needsAnswer("workerpool.Replay", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.pool.Replay(ctx, from, oneTask)
		return err
	}),
	needsAnswer("workerpool.ReplayAll", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.wide.ReplayAll(ctx, from)
		return err
	}),
	needsAnswer("workerpool.DiscardDead", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.pool.DiscardDead(ctx, from, oneTask)
		return err
	}),
	needsAnswer("workerpool.Claim", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.wide.Claim(ctx, from, 1, 0)
		return err
	}),
	needsAnswer("workerpool.Heartbeat", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.pool.Heartbeat(ctx, from, workerpool.Lease{ID: oneTask})
		return err
	}),
	needsAnswer("workerpool.Ack", func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.pool.Ack(ctx, from, workerpool.Lease{ID: oneTask}, "")
	}),
	needsAnswer("workerpool.Nack", func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.pool.Nack(ctx, from, workerpool.Lease{ID: oneTask}, errors.New("no"))
	}),
	{"continuous.Start", func(ctx context.Context, s *sendable, from object.Caller) (any, error) {
		return s.clock.Start(ctx, from, "a", parcelA)
	}, continuous.Started{Sent: true}, []storedLetter{{"clock/a", "start", `{"To":"anna","Grams":250}`}}},
	silent("continuous.Trigger", "clock/a", "trigger", "{}", func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.clock.Trigger(ctx, from, "a")
	}),
	silent("continuous.Pause", "clock/a", "pause", "{}", func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.clock.Pause(ctx, from, "a")
	}),
	silent("continuous.Resume", "clock/a", "resume", "{}", func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.clock.Resume(ctx, from, "a")
	}),
	silent("continuous.Stop", "clock/a", "stop", `"why"`, func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.clock.Stop(ctx, from, "a", "why")
	}),
	silent("continuous.Terminate", "clock/a", "terminate", `"why"`, func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.clock.Terminate(ctx, from, "a", "why")
	}),
	needsAnswer("continuous.Status", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.clock.Status(ctx, from, "a")
		return err
	}),
	needsAnswer("continuous.State", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.clock.State(ctx, from, "a")
		return err
	}),
	{"debounce.Add", func(ctx context.Context, s *sendable, from object.Caller) (any, error) {
		return s.heap.Add(ctx, from, "a", parcelA, debounce.EventID("e1"))
	}, debounce.Ack{Sent: true}, []storedLetter{{"heap/a", "add", `{"To":"anna","Grams":250}`}}},
	silent("debounce.Pause", "heap/a", "pause", "{}", func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.heap.Pause(ctx, from, "a")
	}),
	silent("debounce.Resume", "heap/a", "resume", "{}", func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.heap.Resume(ctx, from, "a")
	}),
	silent("debounce.Terminate", "heap/a", "terminate", `"why"`, func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.heap.Terminate(ctx, from, "a", "why")
	}),
	needsAnswer("debounce.FlushNow", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.heap.FlushNow(ctx, from, "a")
		return err
	}),
	needsAnswer("debounce.Status", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.heap.Status(ctx, from, "a")
		return err
	}),
	needsAnswer("debounce.Pending", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.heap.Pending(ctx, from, "a")
		return err
	}),
	{"workflow.Start", func(ctx context.Context, s *sendable, from object.Caller) (any, error) {
		return s.trip.Start(ctx, from, "a", parcelA)
	}, workflow.Started{Sent: true}, []storedLetter{{"trip/a", "start", `{"To":"anna","Grams":250}`}}},
	silent("workflow.Restart", "trip/a", "restart", `{"To":"anna","Grams":250}`, func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.trip.Restart(ctx, from, "a", parcelA)
	}),
	silent("workflow.Cancel", "trip/a", "cancel", `"why"`, func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.trip.Cancel(ctx, from, "a", "why")
	}),
	silent("workflow.Pause", "trip/a", "pause", `{"reason":"why","until":"2001-09-09T01:46:40Z"}`, func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.trip.Pause(ctx, from, "a", "why", time.Unix(1e9, 0).UTC())
	}),
	silent("workflow.Resume", "trip/a", "resume", "{}", func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.trip.Resume(ctx, from, "a")
	}),
	silent("workflow.Terminate", "trip/a", "terminate", `"why"`, func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.trip.Terminate(ctx, from, "a", "why")
	}),
	silent("workflow.Retry", "trip/a", "retry", "{}", func(ctx context.Context, s *sendable, from object.Caller) error {
		return s.trip.Retry(ctx, from, "a")
	}),
	silent("workflow.Signal.Send", "trip/a", "signal arrived", `{"To":"anna","Grams":250}`, func(ctx context.Context, s *sendable, from object.Caller) error {
		return arrived.Send(ctx, from, s.trip, "a", parcelA)
	}),
	needsAnswer("workflow.Wait", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.trip.Wait(ctx, from, "a")
		return err
	}),
	needsAnswer("workflow.Status", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.trip.Status(ctx, from, "a")
		return err
	}),
	needsAnswer("workflow.History", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.trip.History(ctx, from, "a", 0, 0)
		return err
	}),
	needsAnswer("workflow.HistoryOf", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.trip.HistoryOf(ctx, from, "a", 0, 0, 0)
		return err
	}),
	needsAnswer("workflow.Var.Get", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, _, err := place.Get(ctx, from, s.trip, "a")
		return err
	}),
	needsAnswer("debounce.Clear", func(ctx context.Context, s *sendable, from object.Caller) error {
		_, err := s.heap.Clear(ctx, from, "a")
		return err
	}),
}

// needsAnswer is a verb that cannot be sent.
func needsAnswer(name string, call func(context.Context, *sendable, object.Caller) error) verb {
	return verb{name: name, call: func(ctx context.Context, s *sendable, from object.Caller) (any, error) {
		return nil, call(ctx, s, from)
	}}
}

// silent is a verb without an answer, and the one message that it stores.
func silent(name, to, method, arg string, call func(context.Context, *sendable, object.Caller) error) verb {
	v := needsAnswer(name, call)
	v.want, v.sent = none{}, []storedLetter{{to, method, arg}}
	return v
}

// clerk is an object that calls a verb with its Outbox.
type clerk struct{ st *object.State }

// newClerks returns the class of the clerks, and a method that calls the verb of an index.
func newClerks(s *sendable) (*object.Class[clerk], *object.Method[int, string]) {
	class := object.Define("clerk", func(_ context.Context, st *object.State) (*clerk, error) { return &clerk{st}, nil })
	return class, object.Handle(class, "send", func(c *clerk, ctx context.Context, i int) (string, error) {
		answer, err := verbs[i].call(ctx, s, c.st.Outbox())
		if errors.Is(err, object.ErrNeedsAnswer) {
			return "needs an answer", nil // the turn goes on and commits
		}
		if _, ok := verbs[i].want.(none); err == nil && !ok && !reflect.DeepEqual(answer, verbs[i].want) {
			return "wrong answer", nil
		}
		return "sent", err
	})
}

// Proves J19. Each verb of each job type is either sent, as the bytes that are stored
// format, or is refused before anything is written. The classes of the jobs are not in
// the host, so that messages stay in the store.
func TestVerbsWithAnOutbox(t *testing.T) {
	for i, v := range verbs {
		t.Run(v.name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				clerks, send := newClerks(newSendable())
				s.Host(clerks)
				got, err := send.Call(s.Context(), s, "c", i)
				s.OK(err)
				want := "sent"
				if v.want == nil {
					want = "needs an answer"
				}
				if got != want {
					s.Fatalf("the verb gave %q, want %q", got, want)
				}
				stored := letters(s, s.Store())
				if !slices.Equal(stored, v.sent) {
					s.Errorf("stored messages:\n%q\nwant:\n%q", stored, v.sent)
				}
			})
		})
	}
}

// letters are the messages of a store to all receivers of the verbs.
func letters(s *harness.Sim, store *storage.Store) (all []storedLetter) {
	for _, to := range []storage.ID{
		{Class: "pool", Name: "0"}, {Class: "wide", Name: "0"}, {Class: "wide", Name: "1"}, {Class: "wide", Name: "2"},
		{Class: "clock", Name: "a"}, {Class: "heap", Name: "a"}, {Class: "trip", Name: "a"},
	} {
		for queue := range byte(storage.Queues) {
			s.OK(store.Messages(to, queue, 0, math.MaxUint64, func(m storage.StoredMessage) bool {
				// version, class and name of the sender, method, flags, key and its time, argument
				rest := m.Value[1+1+len("clerk")+1+len("c"):]
				method, rest := string(rest[1:1+rest[0]]), rest[1+rest[0]:]
				if rest[0] == 1 { // a key: text, and the default time of a debounce in 7 bytes
					rest = rest[1+1+rest[1]+7-1:]
				}
				all = append(all, storedLetter{to.String(), method, string(rest[1:])})
				return true
			}))
		}
	}
	return all
}

// All verbs are in the table: the methods of the job types with a Caller as their second
// parameter.
func TestTableOfVerbsIsWhole(t *testing.T) {
	caller := reflect.TypeFor[object.Caller]()
	for name, typ := range map[string]reflect.Type{
		"workerpool": reflect.TypeFor[*workerpool.Pool[parcel, string]](),
		"continuous": reflect.TypeFor[*continuous.Job[parcel]](),
		"debounce":   reflect.TypeFor[*debounce.Job[parcel, none]](),
		"workflow":   reflect.TypeFor[*workflow.Workflow[parcel, string]](),
	} {
		n := 0
		for m := range typ.NumMethod() {
			m := typ.Method(m)
			if m.Type.NumIn() < 3 || m.Type.In(2) != caller {
				continue
			}
			n++
			if !slices.ContainsFunc(verbs, func(v verb) bool { return v.name == name+"."+m.Name }) {
				t.Errorf("%s.%s is not in the table of verbs", name, m.Name)
			}
		}
		if n < 7 {
			t.Errorf("%s has %d verbs", name, n)
		}
	}
}

// FORMAT.md lists the methods of all messages, with their arguments.
func TestFormatListsSentVerbs(t *testing.T) {
	document, err := os.ReadFile("../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verbs {
		kind, _, _ := strings.Cut(v.name, ".")
		for _, l := range v.sent {
			row := "| " + kind + " | `" + l.method + "` | "
			if signal, _, ok := strings.Cut(l.method, arrived.Name()); ok {
				row = "| " + kind + " | `" + signal + "` and the name of the signal | "
			}
			if !strings.Contains(string(document), row) {
				t.Errorf("FORMAT.md has no row %q", row)
			}
			if len(l.arg) > 2 && l.method != "enqueueBatch" && !strings.Contains(string(document), "`"+l.arg+"`") {
				t.Errorf("FORMAT.md does not show the argument `%s` of %s", l.arg, l.method)
			}
		}
	}
}
