package object

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v3"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object/internal/crew"
	"github.com/holdfast-dev/holdfast/object/internal/labels"
	"github.com/holdfast-dev/holdfast/object/internal/tap"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// Options say where a host keeps its objects and how it behaves. The zero value
// with a Dir is fit for production.
type Options struct {
	// Dir is the directory of the store. Required, unless Storage names one.
	Dir string
	// WaitForLock is how long Open waits while another process has the directory
	// open, as during a deploy; then it returns storage.ErrLocked. Default: that of
	// Storage, which is 0, no wait.
	WaitForLock time.Duration
	// Storage shapes the store. Its Dir, Seams and Log are taken from here.
	Storage storage.Options
	// Codec turns arguments, answers and stored values into bytes. A store keeps one
	// codec for its whole life, because another one cannot read the stored bytes.
	// Default: JSON.
	Codec Codec
	// IdleAfter is how long an object stays in memory without a call or an alarm.
	// Default: 1 minute.
	IdleAfter time.Duration
	// MaxLive is how many objects may be in memory. Beyond it idle objects that were
	// used least recently are evicted. Default: 100,000.
	MaxLive int
	// AlarmsInFlight is how many alarms may be under way at a time: the handler runs, or
	// its commit is not yet durable. While calls from outside are under way, alarms begin
	// in portions of 16 with a sync of the log between, so that calls do not wait behind
	// all alarms that are due. Default: 2048.
	AlarmsInFlight int
	// EventRetention is how long events are kept. Default: 24 hours. After it was made shorter, new
	// events may expire before older ones of their object, until the longer time has passed (V7).
	EventRetention time.Duration
	// Feed stores the order of all events, a row of about 40 bytes and the names for each event, for
	// Host.Feed and so that taps to a class or to all objects go on over restarts. Rows are kept for
	// EventRetention. An opening without it ends the feed, and the next one with it begins
	// another: then readers are told that they have missed events. Default: no feed.
	Feed bool
	// RecoveryConcurrency is how many objects are recovered at a time after
	// Open. Default: 64.
	RecoveryConcurrency int
	// MaxKeyBytes, MaxValueBytes and MaxBatchBytes bound a key, a value and all writes of
	// one turn. Default: 2 KiB, 2 MiB, 16 MiB. MaxBatchBytes is at most 32 MiB.
	MaxKeyBytes, MaxValueBytes, MaxBatchBytes int
	// MaxMessages is how many messages may wait in the store; beyond it Send is refused
	// with ErrOutboxFull. After an Open those of before are counted in the background.
	// Default: 10,000,000.
	MaxMessages int
	// Logger receives what no caller is told, for example recoveries, dead letters and
	// errors of the store. Default: slog.Default().
	Logger *slog.Logger
	// Observer is told of calls, alarms, messages and executions, for example to trace them.
	// Default: nil, which costs a branch.
	Observer Observer
	// Seams are the clock, executor, random source and probe. Zero: those of production.
	Seams seam.Seams
}

// withDefaults returns o with the default for each option that is zero, and the first
// mistake in it.
func (o Options) withDefaults() (Options, error) {
	o.Seams = o.Seams.WithDefaults()
	o.Codec = cmp.Or[Codec](o.Codec, JSON{})
	o.IdleAfter = cmp.Or(o.IdleAfter, time.Minute)
	o.MaxLive = cmp.Or(o.MaxLive, 100_000)
	o.AlarmsInFlight = cmp.Or(o.AlarmsInFlight, 2048)
	o.EventRetention = cmp.Or(o.EventRetention, 24*time.Hour)
	o.MaxMessages = cmp.Or(o.MaxMessages, 10_000_000)
	o.RecoveryConcurrency = cmp.Or(o.RecoveryConcurrency, 64)
	o.MaxKeyBytes = cmp.Or(o.MaxKeyBytes, 2<<10)
	o.MaxValueBytes = cmp.Or(o.MaxValueBytes, 2<<20)
	o.MaxBatchBytes = cmp.Or(o.MaxBatchBytes, 16<<20)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Dir != "" {
		o.Storage.Dir = o.Dir
	}
	if o.WaitForLock != 0 {
		o.Storage.WaitForLock = o.WaitForLock
	}
	o.Feed = o.Feed || o.Storage.Feed
	o.Storage.Feed = o.Feed
	o.Storage.Seams = o.Seams
	o.Storage.Log = o.Logger
	return o, o.validate()
}

// validate returns the first mistake in o, which has its defaults.
func (o Options) validate() error {
	negative := cmp.Or(
		notNegative("WaitForLock", o.WaitForLock), notNegative("IdleAfter", o.IdleAfter), notNegative("EventRetention", o.EventRetention), notNegative("MaxLive", o.MaxLive),
		notNegative("AlarmsInFlight", o.AlarmsInFlight), notNegative("RecoveryConcurrency", o.RecoveryConcurrency),
		notNegative("MaxMessages", o.MaxMessages), notNegative("MaxKeyBytes", o.MaxKeyBytes), notNegative("MaxValueBytes", o.MaxValueBytes), notNegative("MaxBatchBytes", o.MaxBatchBytes),
	)
	switch {
	case o.Storage.Dir == "" && o.Storage.Engine == nil:
		return errors.New("object: Options.Dir is empty: name a directory for the store")
	case negative != nil:
		return fmt.Errorf("object: Options.%w", negative)
	case o.MaxBatchBytes > 32<<20:
		return fmt.Errorf("object: Options.MaxBatchBytes is %d: the greatest is 32 MiB", o.MaxBatchBytes)
	}
	return nil
}

// Host is a process's runtime over one store: it activates objects, runs their turns and
// fires their alarms. Its methods may be called from any goroutine. Two hosts in one
// process need two directories, and share nothing.
//
// Host has no mutex of its own: Open sets its plain fields before any turn runs, and each
// part below guards its own.
type Host struct {
	options Options
	seams   seam.Seams
	store   *storage.Store
	hosted  map[string]*hosted // by name of the class; never changes
	names   []string           // of the classes, in the order of Open
	alarms  *alarm.Scheduler
	mail    mail // the way of messages to their receivers
	// flightLog stores which alarms run, and knows which work may have killed the process.
	flightLog flightLog
	waits     waits  // which turn waits for which, to find deadlocks
	awaits    awaits // calls of State.Await, which Shutdown ends
	lent      lent   // the turns that Release has lent out
	lru       lru    // the objects in memory, for eviction
	// batches holds empty *storage.Batch values, and doneChans the channels of requests
	// that were answered, so that a turn need not allocate its own.
	batches   sync.Pool
	doneChans sync.Pool
	// expiry removes marks and events that have expired; filterBudget bounds the memory of
	// the filters over marks.
	expiry       expiry
	filterBudget filterBudget
	taps         any             // the newest events, for Watch and Tap; see tapsOf
	feedNews     feedNews        // wakes the taps that read the feed
	labels       labels.Counts   // of the objects of all classes
	held         holdWatch       // finds turns that hold their object for too long
	unconfirmed  unconfirmedSync // makes unconfirmed commits durable a little later
	// afterDurable runs short steps once a commit is durable, so that no goroutine has to
	// wait for each of them, for example the start of routines.
	afterDurable *crew.AfterDurable
	crew         *crew.Crew   // the goroutines that serve mailboxes, alarms and routines
	runway       *crew.Runway // lets due alarms go to the crew in portions
	report       report
	metrics      *metrics
	imports      any // the objects of parked classes that are being imported; see importsOf
	known        knownClasses

	lifecycle  lifecycle   // whether calls are taken, and how many things run
	suspension *suspension // stops work while the log does not answer; nil on one machine

	// departed is the newest ticket that any evicted object depended on. A read of such an
	// object must wait for it, because the object's memory, which knew its own ticket, is
	// gone. One number serves all objects; it only ever grows.
	departed atomic.Uint64
}

// hosted is a class in a host, with the activations of its objects.
type hosted struct {
	*class
	host    *Host
	options ClassOptions
	live    any     // the objects in memory, by name; see liveIn
	failing failing // objects with a constructor that fails
	counts  classCounts

	backlogs backlogs
	permits  *permits // nil: the class has no limit
	// outboxFullAt is when a Send of an object was last refused with ErrOutboxFull; 0: none was. Turns of all objects write it.
	outboxFullAt atomic.Int64
}

// The types of a Host and of all to which it leads have no generic fields, because the compiler makes
// the methods of those again in each package that uses a Host. So these fields are of type any.

// liveIn returns the objects of the class in memory, by name.
func liveIn(c *hosted) *xsync.MapOf[string, *activation] {
	return c.live.(*xsync.MapOf[string, *activation])
}

// tapsOf returns the newest events.
func tapsOf(h *Host) *tap.Hub[Event] { return h.taps.(*tap.Hub[Event]) }

// listenerOf returns the listener of a tap that has one.
func listenerOf(t *Tap) *tap.Listener[Event] { return t.listener.(*tap.Listener[Event]) }

// importsOf returns the objects of parked classes that are being imported, by storage.ID.
func importsOf(h *Host) *sync.Map { return h.imports.(*sync.Map) }

// parkedIn returns the names of the parked classes.
func parkedIn(k *knownClasses) *sync.Map { return k.parked.(*sync.Map) }

// Open opens the store and starts the host with the classes defs. It begins to recover the
// executions that an earlier process left open, and to fire the alarms that are due, on
// goroutines of its own. It returns an error for each mistake in the options and the
// definitions, joined, and the errors of storage.Open. If it fails, it has closed
// Options.Storage.Engine. The caller calls Shutdown at the end.
func Open(o Options, defs ...Definition) (*Host, error) {
	o, err := o.withDefaults()
	h := &Host{options: o, seams: o.Seams, hosted: make(map[string]*hosted), imports: new(sync.Map)}
	h.known.parked = new(sync.Map)
	h.batches.New = func() any { return new(storage.Batch) }
	h.doneChans.New = func() any { return make(chan struct{}, 1) }
	h.lru.init(h)
	h.lifecycle.init()
	h.filterBudget.total = filterBytes
	if err = errors.Join(err, h.register(defs)); err != nil {
		if e := o.Storage.Engine; e != nil {
			_ = e.Close() // err says why the host cannot be opened
		}
		return nil, err
	}
	h.held.init(h)
	if h.store, err = storage.Open(o.Storage); err != nil {
		return nil, err
	}
	h.crew = crew.New(h.seams.Executor)
	h.runway = crew.NewRunway(h.crew, h.store, h.lifecycle.calls)
	h.afterDurable = crew.NewAfterDurable(h.crew, h.store)
	h.taps = tap.New[Event](tap.Config{Durable: h.store.Durable, After: h.afterDurable.Do, Position: h.store.NextSeq})
	h.metrics = newMetrics(h)
	h.suspension = newSuspension(h)
	if err := h.start(); err != nil {
		h.expiry.stop()
		h.lifecycle.end(err)
		return nil, errors.Join(err, h.store.Abandon())
	}
	return h, nil
}

// register fills hosted and names from the definitions. It reports all mistakes in them
// together, so that a user mends them in one go.
func (h *Host) register(defs []Definition) error {
	var errs []error
	for i, d := range defs {
		c := definitionOf(d)
		switch {
		case c == nil || c.construct == nil:
			errs = append(errs, fmt.Errorf("object: definition %d of %d is nil or empty: pass what object.Define or a job type's Define returned", i+1, len(defs)))
		case len(c.wrong()) > 0:
			errs = append(errs, c.wrong()...)
		case h.hosted[c.name] != nil:
			errs = append(errs, fmt.Errorf("object: class %q is defined twice", c.name))
		default:
			h.hosted[c.name] = &hosted{
				class: c, host: h, options: c.options.withDefaults(&h.options),
				live: xsync.NewMapOf[string, *activation](), permits: newPermits(h, c.options.WorkLimit),
			}
			h.names = append(h.names, c.name)
		}
	}
	return errors.Join(errs...)
}

// start begins the activities of the host, and counts the labels of a snapshot that no turn
// has changed yet. The count begins last, so that a start that fails leaves no goroutine
// that reads the store.
func (h *Host) start() error {
	snapshot, err := h.store.CountLabels()
	if err != nil {
		return err
	}
	messages, err := h.store.CountMessages()
	if err != nil {
		return errors.Join(err, snapshot.Close())
	}
	if err := h.startActivities(); err != nil {
		return errors.Join(err, snapshot.Close(), messages.Close())
	}
	if err := h.mail.start(messages); err != nil {
		return errors.Join(err, snapshot.Close())
	}
	if err := h.countLabels(snapshot); err != nil {
		return err
	}
	if !h.store.Dormant() {
		h.callAtOpen()
	}
	return nil
}

// startActivities begins, in this order:
//
//  1. the watch over the store, which ends the host if the store dies;
//  2. the expiry of marks and events;
//  3. the flight log, which counts the alarms that the last crash cut off. It comes before
//     recovery and alarms, because these ask it which work may have killed the process;
//  4. the recovery of open executions;
//  5. the trials of suspects, and the scheduler, which fires alarms.
//
// The functions of Class.AtOpen come after all of them; see callAtOpen.
//
// Over a dormant store (O26) only steps 1 and 3 are made: nothing expires, and the scheduler is
// made and not started, so that it keeps no alarm in memory.
func (h *Host) startActivities() error {
	alarms, err := alarm.NewScheduler(h.schedulerConfig())
	if err != nil {
		return err
	}
	h.alarms = alarms
	if err := h.mail.init(h); err != nil {
		return err
	}
	h.seams.Executor.Go("storage/watch", h.watchStore)
	if err := h.expiry.start(h); err != nil {
		return err
	}
	if err := h.flightLog.open(h); err != nil {
		return err
	}
	if h.store.Dormant() {
		return nil
	}
	if err := h.recoverOpen(); err != nil {
		return err
	}
	h.flightLog.suspects.start()
	h.alarms.Start()
	return nil
}

// watchStore ends the host when its store dies, also if no call is there to notice. It
// runs on a goroutine of its own until the host ends.
func (h *Host) watchStore() {
	if h.seams.Executor.Wait(h.lifecycle.ctx, h.store.Dead()) == nil {
		h.fail(h.store.Err())
	}
}

// countLabels counts the labelled objects of a snapshot, on a goroutine of its own. A host
// that has ended meanwhile counts nothing.
func (h *Host) countLabels(snapshot *storage.LabelCount) error {
	if h.lifecycle.enter(false) != nil {
		return snapshot.Close()
	}
	h.seams.Executor.Go("labels", func() {
		defer h.lifecycle.leave()
		if err := h.labels.Read(snapshot, h.lifecycle.closing.Load); err != nil {
			h.fail(err)
		}
	})
	return nil
}

// callAtOpen calls the functions that the classes were given by AtOpen, each on a goroutine
// of its own. Shutdown ends their contexts as those of Await, and waits for them.
func (h *Host) callAtOpen() {
	for _, name := range h.names {
		for _, f := range h.hosted[name].atOpen {
			if h.lifecycle.enter(false) != nil {
				return
			}
			h.seams.Executor.Go("open", func() {
				defer h.lifecycle.leave()
				ctx, cancel := context.WithCancelCause(h.lifecycle.ctx)
				defer cancel(nil)
				place := h.awaits.enter(cancel)
				defer h.awaits.leave(place)
				f(ctx, h, h.options.Logger.With("class", name))
			})
		}
	}
}

// Epoch returns the number of this opening of the store. It is greater than that of every
// earlier opening.
func (h *Host) Epoch() uint64 { return h.store.Epoch() }

// Store returns the host's store, for tests and tools that read the stored rows. Its rows
// must not be changed while the host is open, because objects in memory would not see it.
func (h *Host) Store() *storage.Store { return h.store }

// Codec returns the codec of the host, which has encoded the Data of its events.
func (h *Host) Codec() Codec { return h.options.Codec }

// Seams returns the clock, executor, random source and probe of the host.
func (h *Host) Seams() *seam.Seams { return &h.seams }

// NewName returns a random name of 128 bits in hexadecimal, for an object without a
// natural name. Two calls never return the same name in practice.
func (h *Host) NewName() string {
	return fmt.Sprintf("%016x%016x", h.seams.Rand.Uint64(), h.seams.Rand.Uint64())
}
