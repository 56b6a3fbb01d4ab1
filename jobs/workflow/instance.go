package workflow

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/object"
)

// Keys of a run, besides jobs.MetaKey and those of the engine.
const (
	inputKey      = "in"  // by the host's codec
	outputKey     = "out" // by the host's codec
	rowKey        = "run" // runRow
	historyPrefix = "e/"  // then the sequence in 8 bytes: an entry
	// then the generation and the sequence, in 8 bytes each: an entry, with Config.KeepGenerations
	generationPrefix = "g/"
)

// runRow is stored for a run beside its metadata. It is written at the start, at each
// suspension, at the end, and with a Cancel, and not by a step.
type runRow struct {
	Generation uint64    `json:"generation,omitempty"`
	Began      time.Time `json:"began"`           // of the generation
	Wake       time.Time `json:"wake,omitzero"`   // when the run goes on by itself
	Since      time.Time `json:"since,omitzero"`  // when it was suspended
	Waits      []Wait    `json:"waits,omitempty"` // one of them lets it go on before
	Cancel     bool      `json:"cancel,omitempty"`
	Reason     string    `json:"reason,omitempty"` // of the Cancel
	Seen       bool      `json:"seen,omitempty"`   // the suspended run knows of the Cancel
	Letter     uint64    `json:"letter,omitempty"` // its dead letter
	Parent     *parent   `json:"parent,omitempty"`
	Answered   bool      `json:"answered,omitempty"` // the parent has been sent the end
	Keep       bool      `json:"keep,omitempty"`     // the history of the generation stands under its number, and is kept
	Kept       uint64    `json:"kept,omitempty"`     // earlier generations with histories that are kept
	Queued     bool      `json:"queued,omitempty"`   // EventQueued was told, and no execution has begun since
	QueuedAt   time.Time `json:"queuedAt,omitzero"`  // since when the run was due then; a store of before has no such time
}

// instance is a run in memory. Its methods run in turns of the object, but entries and
// bytes, which the tasks of a stretch read too.
type instance struct {
	d        *definition
	st       *object.State
	job      *engine.Job
	row      runRow
	signals  waitingSignals
	children map[uint64]child // open, by the place of their entry
	next     uint64           // sequence of the next entry
	entries  atomic.Int64
	bytes    atomic.Int64
	fresh    bool     // it was started in this turn, so it has no history
	stretch  *stretch // the last one; nil: none in this instance
	ended    chan struct{}

	completed deadData // steps of the run that fails in this turn, for the event behind its dead letter
}

// load is the constructor.
func load(ctx context.Context, st *object.State, d *definition) (*instance, error) {
	in := &instance{d: d, st: st, ended: make(chan struct{})}
	exists, err := st.Storage().GetInto(ctx, rowKey, &in.row)
	if err != nil {
		return nil, err
	}
	if exists {
		if err := errors.Join(in.loadSignals(ctx), in.loadChildren(ctx)); err != nil {
			return nil, err
		}
	}
	in.job, err = engine.NewJob(ctx, st, engine.JobOptions{
		Options: d.config.execution(), Type: "workflow", Stuck: true, FreeResets: true, Retention: d.config.Retention,
	}, in)
	if err == nil && in.job.Meta().Status.Ended() {
		close(in.ended)
	}
	return in, err
}

// Alarm passes each wake-up to the job.
func (in *instance) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return in.job.Alarm(ctx, info)
}

// put stores the row of the run.
func (in *instance) put(ctx context.Context, r runRow) error {
	if err := in.st.Storage().Put(ctx, rowKey, r); err != nil {
		return err
	}
	in.row = r
	return nil
}

// existing returns jobs.ErrNotFound if the object has no run.
func (in *instance) existing() error {
	if !in.job.Exists() {
		return fmt.Errorf("%w: %s", jobs.ErrNotFound, in.st.ID())
	}
	return nil
}

// start creates the run in one batch with its first begin. It changes nothing if there is
// one (F13).
func (in *instance) start(ctx context.Context, input []byte, from *parent) (Started, error) {
	if in.job.Exists() {
		return Started{Status: in.job.Meta().Status}, nil
	}
	err := in.job.Turn(ctx, func(ctx context.Context) error {
		if err := in.st.Storage().PutBytes(ctx, inputKey, input); err != nil {
			return err
		}
		if err := in.job.Create(ctx); err != nil {
			return err
		}
		in.fresh = true
		now := in.job.Now()
		return in.put(ctx, runRow{Began: now, Wake: now, Parent: from, Keep: in.d.config.KeepGenerations > 0})
	})
	return Started{Created: err == nil, Status: in.job.Meta().Status}, err
}

// Next returns when the run goes on, for the engine. A run that a signal, an answer or a
// Cancel lets go on is due in the turn that has brought it, and begins there or is Queued.
func (in *instance) Next() time.Time {
	r, now := &in.row, in.now()
	due := r.Wake
	if (due.IsZero() || due.After(now)) && (r.Cancel && !r.Seen || in.answered()) {
		due = now
	}
	switch {
	case !r.Queued || due.IsZero() || due.After(now):
		return due
	case r.QueuedAt.IsZero() && due.Equal(r.Wake): // a store of before
		return due
	case r.QueuedAt.IsZero():
		return in.past(r.Since)
	}
	return in.past(r.QueuedAt)
}

// now is the time of the turn, or that of the clock in the constructor. It is not after the
// time with which the engine compares the answer of Next.
func (in *instance) now() time.Time {
	if in.job == nil {
		return storable(in.st.Now())
	}
	return in.job.Now()
}

// past is t, or now if the clock was set back behind t.
func (in *instance) past(t time.Time) time.Time {
	if now := in.now(); t.After(now) {
		t = now
	}
	return storable(t)
}

// answered reports whether something has come that the suspended run waits for.
func (in *instance) answered() bool {
	for _, w := range in.row.Waits {
		if w.Kind == waitSignal && in.signals.has(w.Name) {
			return true
		}
		if w.Kind == waitChild && in.hasAnswer(w.Name) {
			return true
		}
	}
	return false
}

// hasAnswer reports whether a child of that name has answered.
func (in *instance) hasAnswer(name string) bool {
	for _, c := range in.children {
		if c.Answer != nil && c.Class+"/"+c.Name == name {
			return true
		}
	}
	return false
}

// Prepare returns the work of a stretch. The engine calls it in the turn that begins it.
func (in *instance) Prepare(ctx context.Context, _ jobs.Run) (engine.Work, error) {
	s, err := in.newStretch(ctx)
	if err != nil {
		return nil, err
	}
	in.stretch, in.fresh = s, false
	if r := in.row; r.Queued {
		r.Queued, r.QueuedAt = false, time.Time{}
		err = in.put(ctx, r)
	}
	return s.run, err
}

// newStretch reads the rows that a stretch needs.
func (in *instance) newStretch(ctx context.Context) (*stretch, error) {
	driver := in.st.Driver()
	s := &stretch{
		in: in, st: in.st, d: in.d, seams: driver.Seams(), codec: driver.Codec(), id: in.st.ID(),
		maxValueBytes: in.maxValueBytes(), maxMessageBytes: driver.MaxValueBytes(),
	}
	s.of(in.row, in.job.Meta())
	var err error
	if s.input, _, err = in.st.Storage().Get(ctx, inputKey); err != nil {
		return nil, err
	}
	entries, err := in.history(ctx)
	if err != nil {
		return nil, err
	}
	s.entries, s.repeats = history.Scopes(entries), len(entries)
	s.unread = len(s.entries)
	in.next = 0
	var bytes int64
	for i := range entries {
		in.next = entries[i].Seq + 1
		bytes += int64(entries[i].Bytes())
		s.failed = s.failed || entries[i].Kind == history.Fail
	}
	in.entries.Store(int64(len(entries)))
	in.bytes.Store(bytes)
	return s, nil
}

// of sets the fields of a stretch that come from the stored rows of its run.
func (s *stretch) of(r runRow, m jobs.Meta) {
	s.isChild = r.Parent != nil
	s.began, s.number, s.cancel, s.reason = r.Began, r.Generation, r.Cancel, r.Reason
	s.life = m.CreationID
	s.ended, s.gone = make(chan struct{}), make(chan struct{})
}

// keyPrefix begins the keys of the steps of the generation.
func (s *stretch) keyPrefix() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prefix == "" {
		s.prefix = fmt.Sprintf("%s/%s/%d/", s.id, s.life, s.number)
	}
	return s.prefix
}

// maxValueBytes is the limit of a recorded value. It leaves room for the names of the entry.
func (in *instance) maxValueBytes() int {
	d := in.st.Driver()
	return min(d.MaxValueBytes(), d.MaxBatchBytes()/2) - 1024
}

// history reads the entries of the run.
func (in *instance) history(ctx context.Context) (entries []history.Entry, err error) {
	if in.fresh {
		return nil, nil
	}
	prefix := in.row.prefix()
	for item, err := range in.st.Storage().List(ctx, object.ListOptions{Prefix: prefix}) {
		if err != nil {
			return nil, err
		}
		e, err := history.Decode(seqOf(item.Key, prefix), item.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.st.ID(), err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// append stores new entries, in a turn of the stretch that made them. Another stretch, or
// the end of the execution, fences it off.
func (in *instance) append(ctx context.Context, t engine.Token, entries []*history.Entry) error {
	if _, open := in.job.Engine().Lookup(t); !open {
		return fmt.Errorf("%s: %w", in.st.ID(), jobs.ErrStaleExecution)
	}
	var room [256]byte
	prefix, bytes := in.row.prefix(), 0
	for i, e := range entries {
		e.Seq = in.next + uint64(i)
		if err := in.st.Storage().PutBytes(ctx, seqKey(prefix, e.Seq), e.Append(room[:0])); err != nil {
			return err
		}
		bytes += e.Bytes()
	}
	if !in.large(0, 0) && in.large(len(entries), bytes) {
		if err := in.st.Emit(ctx, EventLarge, jobs.Event{Run: in.row.Generation}); err != nil {
			return err
		}
	}
	if err := in.job.Engine().Progressed(ctx, t); err != nil {
		return err
	}
	in.next += uint64(len(entries))
	in.entries.Add(int64(len(entries)))
	in.bytes.Add(int64(bytes))
	return nil
}

// large reports whether the history has reached 80 % of a limit with so many entries and
// bytes more.
func (in *instance) large(entries, bytes int) bool {
	c := &in.d.config
	return (in.entries.Load()+int64(entries))*10 >= int64(c.MaxEntries)*8 || (in.bytes.Load()+int64(bytes))*10 >= int64(c.MaxBytes)*8
}

// seqKey is the key of a row with a sequence number.
func seqKey(prefix string, seq uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(prefix), seq))
}

// seqOf is the reverse of seqKey, and 0 for a key of another form.
func seqOf(key, prefix string) uint64 {
	if len(key) != len(prefix)+8 {
		return 0
	}
	return binary.BigEndian.Uint64([]byte(key[len(prefix):]))
}

// result is the end of the execution that the stretch was.
func (s *stretch) result() (engine.Result, error) {
	o := &s.outcome
	res := engine.Result{Size: s.pending.bytes + len(o.value), Store: s.storeResult, Wish: o.wish()}
	switch o.kind {
	case failed:
		if res.Err = o.err; res.Wish == engine.Cancel {
			res.Reason = s.reason
		}
	case stuck:
		return s.stuckWith(o.err)
	case cut:
		return engine.Result{}, o.err
	}
	return res, nil
}

// wish is how the run goes on after the outcome.
func (o *outcome) wish() engine.Wish {
	switch {
	case o.kind == returned:
		return engine.Complete
	case o.kind != failed:
		return engine.Continue
	case errors.Is(o.err, ErrCancelled):
		return engine.Cancel
	}
	return engine.Fail
}

// storeResult is the Store of the result. If it returns an error the memory of the run is as
// before, because the engine undoes a result that is too large.
func (s *stretch) storeResult(ctx context.Context) error {
	in := s.in
	row, children, next := in.row, maps.Clone(in.children), in.next
	entries, bytes := in.entries.Load(), in.bytes.Load()
	err := s.storeOutcome(ctx)
	if err != nil {
		in.row, in.children, in.next = row, children, next
		in.entries.Store(entries)
		in.bytes.Store(bytes)
	}
	return err
}

// storeOutcome stores the entries that are pending, and the rows that belong to the outcome.
func (s *stretch) storeOutcome(ctx context.Context) error {
	o := &s.outcome
	switch o.kind {
	case suspended:
		r := s.in.row
		r.Wake, r.Waits, r.Since, r.Seen = o.wake, o.waits, s.in.job.Now(), o.cancel
		if err := errors.Join(s.store(ctx), s.in.put(ctx, r)); err != nil {
			return err
		}
		return s.st.Emit(ctx, EventSuspended, jobs.Event{Run: r.Generation, At: r.Wake})
	case continued:
		store := s.store
		if !s.in.row.Keep { // the entries that are pending would go with the others
			store = func(ctx context.Context) error { return s.in.setVars(ctx, s.pending.vars) }
		}
		return errors.Join(store(ctx), s.in.beginAnew(ctx, o.value))
	case returned:
		if err := s.in.st.Storage().PutBytes(ctx, outputKey, o.value); err != nil {
			return err
		}
	}
	return s.conclude(ctx, o.wish())
}

// conclude stores the rows that belong to the end of a run: its last entries, its dead letter, the
// answer to its parent, and the cancels of its children.
func (s *stretch) conclude(ctx context.Context, wish engine.Wish) error {
	in := s.in
	if err := s.store(ctx); err != nil {
		return err
	}
	if err := in.bury(ctx, wish, s.outcome.err); err != nil {
		return err
	}
	if err := in.cancelChildren(ctx, "the parent has ended", true); err != nil {
		return err
	}
	return in.answerParent(ctx, answerOf(wish, s.outcome.value, s.outcome.err))
}

// stuckWith stores the entries that the stretch has made before its trouble, and returns the error.
func (s *stretch) stuckWith(err error) (engine.Result, error) {
	if s.dry {
		return engine.Result{}, err
	}
	stored := s.st.Do(s.base, s.storing)
	return engine.Result{}, errors.Join(&stuckError{s.st.ID(), err}, stored)
}

// Ended is told of the end of the run; see engine.Type.
func (in *instance) Ended(ctx context.Context, _ engine.Execution, out engine.Outcome) error {
	if out.Kind == engine.Quit {
		close(in.ended)
	}
	return nil
}

// storable is the time nearest to t that an alarm can have.
func storable(t time.Time) time.Time {
	return time.Unix(0, max(alarm.Nanos(t), 1)).UTC()
}
