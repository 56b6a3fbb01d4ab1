package workerpool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// DeadTask is the kind of a dead task in object.Host.DeadLetters, the list of
// all dead work. DeadLetter.Data is JSON with the id, key and queue of the task
// there, for example {"task":"0-17","key":"anna"}.
const DeadTask = "task"

// DeadLetter is a task that has failed for good. It stays until Replay,
// DiscardDead, or the end of its time under Config.Retention. object.Host.DeadLetters lists it too, with the kind DeadTask
// (W10).
type DeadLetter[In any] struct {
	ID       TaskID      `json:"id"`
	Key      string      `json:"key,omitempty"`
	Queue    string      `json:"queue,omitempty"`
	Priority int         `json:"priority,omitempty"`
	In       In          `json:"in"`
	Failures []Failure   `json:"failures,omitempty"` // beyond 100, the first and the last 50
	Reason   jobs.Reason `json:"reason"`             // why the task is not tried again
	Stack    string      `json:"stack,omitempty"`    // of the last failure if that was a panic; at most object.MaxStackBytes
	Died     time.Time   `json:"died"`
	Stale    bool        `json:"stale,omitempty"` // it died longer ago than Retention.StaleAfter
	// Raw has the stored input if it cannot be decoded, and DecodeError has the
	// reason. Then In is zero.
	Raw         []byte `json:"raw,omitempty"`
	DecodeError string `json:"decodeError,omitempty"`
}

// pageBytes is the size of the inputs beyond which DeadLetters ends a page.
const pageBytes = 4 << 20

// DeadLetters returns up to limit dead letters after the given id, ordered by
// partition and number. The zero TaskID is before all ids. A page has fewer
// than limit if its inputs exceed 4 MiB, but only the last page is empty:
//
//	for after := (workerpool.TaskID{}); ; {
//		page, err := pool.DeadLetters(ctx, host, after, 100)
//		if err != nil || len(page) == 0 {
//			return err
//		}
//		after = page[len(page)-1].ID
//	}
func (p *Pool[In, Out]) DeadLetters(ctx context.Context, from object.Caller, after TaskID, limit int) (all []DeadLetter[In], err error) {
	err = p.pool.pages(ctx, from, after, limit, func(name string, g page) (n, bytes int, last uint64, err error) {
		some, err := p.letters(ctx, from, name, g)
		if n = len(some.Letters); n > 0 {
			all, last = append(all, some.Letters...), some.Letters[n-1].ID.Number
		}
		return n, some.Bytes, last, err
	})
	return all, err
}

// pages calls read for pages of the dead letters of one partition after another, until it has read limit of them or
// pageBytes. read returns how many there were, their size, and the number of the last.
func (p *pool) pages(ctx context.Context, from object.Caller, after TaskID, limit int, read func(name string, g page) (n, bytes int, last uint64, err error)) error {
	parts, err := p.partitions(ctx, from)
	for i, bytes := after.Partition, 0; err == nil && i < parts && limit > 0 && bytes < pageBytes; {
		g := page{Limit: limit}
		if i == after.Partition {
			g.After = after.Number
		}
		var n, size int
		n, size, g.After, err = read(TaskID{Partition: i}.object(), g)
		if n == 0 {
			i++
			continue
		}
		bytes += size
		limit -= n
		after = TaskID{i, g.After}
	}
	return err
}

// lettersPage is the dead letters of a page from one partition, and their size.
type lettersPage[In any] struct {
	Letters []DeadLetter[In] `json:"letters,omitempty"`
	Bytes   int              `json:"bytes,omitempty"`
}

// Replay makes dead letters pending again, as the last tasks of their queues
// and keys, with fresh attempts. It returns how many it replayed; thousands
// take several commits.
//
// If an id names no dead letter, its partition replays none of the ids and the
// error is jobs.ErrNotFound. If another caller replays or discards one of them
// at the same time, the error is jobs.ErrNotFound too, and those before it are
// replayed.
//
//go:noinline
func (p *control) Replay(ctx context.Context, from object.Caller, ids ...TaskID) (int, error) {
	return eachPart(ids, func(name string, nums []uint64) (int, error) {
		return lettersIn(ctx, from, p.pool.calls.replay, name, lettersPart{Numbers: nums})
	})
}

// ReplayAll replays all dead letters that exist now and returns how many.
//
//go:noinline
func (p *control) ReplayAll(ctx context.Context, from object.Caller) (int, error) {
	total := 0
	err := p.pool.objects(ctx, from, func(name string) error {
		n, err := lettersIn(ctx, from, p.pool.calls.replay, name, lettersPart{All: true})
		total += n
		return err
	})
	return total, err
}

// DiscardDead removes dead letters, which then count as cancelled tasks. It
// returns how many it removed, and the errors of Replay.
//
//go:noinline
func (p *control) DiscardDead(ctx context.Context, from object.Caller, ids ...TaskID) (int, error) {
	return eachPart(ids, func(name string, nums []uint64) (int, error) {
		return lettersIn(ctx, from, p.pool.calls.discardDead, name, lettersPart{Numbers: nums})
	})
}

// lettersIn calls m of one partition until the whole part is done.
func lettersIn(ctx context.Context, from object.Caller, m call[lettersPart, lettersTaken], name string, part lettersPart) (total int, err error) {
	for {
		took, err := m(ctx, from, name, part)
		total += took.Count
		if err != nil || took.Left <= 0 {
			return total, err
		}
		part.Known, part.After, part.Most = true, took.Last, took.Left
		if !part.All {
			part.Numbers = part.Numbers[took.Count:]
		}
	}
}

// eachPart calls f with the task numbers of each partition, without
// repetitions.
func eachPart(ids []TaskID, f func(name string, nums []uint64) (int, error)) (total int, errs error) {
	var parts []batchPart
	seen := make(map[TaskID]bool, len(ids))
	for i, id := range ids {
		if !seen[id] {
			seen[id] = true
			parts = addToPart(parts, id.object(), i)
		}
	}
	for _, part := range parts {
		nums := make([]uint64, len(part.index))
		for k, i := range part.index {
			nums[k] = ids[i].Number
		}
		n, err := f(part.object, nums)
		total += n
		errs = errors.Join(errs, err)
	}
	return total, errs
}

// letterOf makes a DeadLetter. An input that cannot be decoded goes to
// DeadLetter.Raw, so that one bad input does not hide the other dead letters.
func (p *Pool[In, Out]) letterOf(part *partition, r *row, version string) DeadLetter[In] {
	d := DeadLetter[In]{
		ID: part.id(r.num), Key: r.key, Queue: r.queue, Priority: r.priority,
		Failures: r.rare.Failures, Reason: r.rare.Reason, Stack: r.rare.Stack, Died: timeOf(r.endedAt), Stale: r.rare.Stale,
	}
	if err := p.input(part, r, version, &d.In); err != nil {
		d.Raw, d.DecodeError = r.input, err.Error()
	}
	return d
}

// pageOf reads one page of the dead letters of a partition, cut where their
// rows reach mergeBytes.
func (p *Pool[In, Out]) pageOf(part *partition, ctx context.Context, g page) (out lettersPage[In], err error) {
	rows, err := part.letters(ctx, g, part.mergeBytes())
	for _, r := range rows {
		out.Bytes += r.size()
		out.Letters = append(out.Letters, p.letterOf(part, r, part.inputVersion(r.num)))
	}
	return out, err
}

// letter reads a dead letter. It reports false if there is none of that number.
func (p *partition) letter(ctx context.Context, num uint64) (*row, bool, error) {
	b, ok, err := p.st.Storage().Get(ctx, deadKey(num))
	if err != nil || !ok {
		return nil, false, err
	}
	r, err := decodeRow(num, b)
	return r, true, err
}

// page asks for up to Limit dead letters with numbers greater than After.
type page struct {
	After uint64
	Limit int
}

// letters reads dead letters in the order of their numbers, until their rows
// exceed limitBytes. It returns at least one if there is one, so that a page
// always makes progress.
func (p *partition) letters(ctx context.Context, g page, limitBytes int) ([]*row, error) {
	o := object.ListOptions{Prefix: deadPrefix, Limit: g.Limit}
	if g.After > 0 {
		o.StartAfter = deadKey(g.After)
	}
	var rows []*row
	bytes := 0
	for item, err := range p.st.Storage().List(ctx, o) {
		if err != nil {
			return nil, err
		}
		if bytes += len(item.Value); bytes > limitBytes && len(rows) > 0 {
			break
		}
		num, err := numberOf(item.Key)
		if err != nil {
			return nil, err
		}
		r, err := decodeRow(num, item.Value)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// lettersPart is the argument of one turn of Replay, ReplayAll or DiscardDead.
// Thousands of dead letters take several turns, because a batch has a limit;
// lettersIn makes the next part from the answer to the last.
type lettersPart struct {
	Numbers []uint64 `json:"numbers,omitempty"`
	All     bool     `json:"all,omitempty"` // take those with numbers after After, in place of Numbers
	After   uint64   `json:"after,omitempty"`
	Most    int      `json:"most,omitempty"`  // with All: the most to take; 0 means all there are now
	Known   bool     `json:"known,omitempty"` // an earlier turn has checked that all of Numbers exist
}

// lettersTaken is the answer of one turn: how many dead letters it took, the
// number of the last, and how many it left to the next turn.
type lettersTaken struct {
	Count int    `json:"count"`
	Last  uint64 `json:"last,omitempty"`
	Left  int    `json:"left,omitempty"`
}

// withLetters removes as many dead letters of a part as fit in one turn, with
// their hook rows, and calls fn for each.
func (p *partition) withLetters(ctx context.Context, part lettersPart, fn func(context.Context, *row) error) (lettersTaken, error) {
	return turn(ctx, p, func(ctx context.Context) (lettersTaken, error) {
		rows, left, err := p.lettersOf(ctx, part)
		if err != nil || len(rows) == 0 {
			return lettersTaken{}, err
		}
		for _, r := range rows {
			if err := p.unbury(ctx, r); err != nil {
				return lettersTaken{}, err
			}
			if err := fn(ctx, r); err != nil {
				return lettersTaken{}, err
			}
		}
		return lettersTaken{len(rows), rows[len(rows)-1].num, left - len(rows)}, nil
	})
}

// unbury removes the rows of a dead letter but those of its phases. The caller counts the task.
func (p *partition) unbury(ctx context.Context, r *row) error {
	if err := p.st.Storage().Remove(ctx, deadKey(r.num)); err != nil {
		return err
	}
	if err := p.discardCalls(ctx, r.num); err != nil {
		return err
	}
	if err := p.unfileAll(ctx, r); err != nil {
		return err
	}
	p.dead--
	p.dirty = true
	return p.exhume(ctx, r)
}

// lettersOf reads the dead letters that one turn takes, and returns how many
// the part has in all.
func (p *partition) lettersOf(ctx context.Context, part lettersPart) (rows []*row, all int, err error) {
	if !part.All {
		rows, err = p.numbered(ctx, part)
		return rows, len(part.Numbers), err
	}
	most := cmp.Or(part.Most, int(p.dead))
	rows, err = p.letters(ctx, page{After: part.After, Limit: max(1, min(p.takeMost(), most))}, p.mergeBytes())
	return rows, most, err
}

// takeMost bounds the dead letters that one turn takes. Beside its input, each
// writes or removes up to six rows of fixed size, its letter among them.
func (p *partition) takeMost() int {
	return max(1, min(discardMax, p.mergeBytes()/(taskBytes+p.phaseBytes())))
}

// numbered reads the named dead letters that one turn takes. In the first turn
// it also checks that the others exist, so that a wrong id is reported before
// anything changes.
func (p *partition) numbered(ctx context.Context, part lettersPart) (rows []*row, err error) {
	bytes := 0
	for _, num := range part.Numbers {
		full := len(rows) == p.takeMost() || bytes > p.mergeBytes()
		if full && part.Known {
			break
		}
		r, ok, err := p.letter(ctx, num)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%s: %w: dead letter %s", p.st.ID(), jobs.ErrNotFound, p.id(num))
		}
		if !full {
			bytes += r.size()
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// replay makes dead letters pending again, with fresh attempts, as the last
// tasks of their queues and keys.
func (p *partition) replay(ctx context.Context, part lettersPart) (lettersTaken, error) {
	return p.withLetters(ctx, part, func(ctx context.Context, r *row) error {
		attempts := r.rare.Run.Attempt
		p.order = p.nextOrder()
		r.state, r.endedAt, r.notBefore, r.order = Pending, 0, 0, p.order
		r.rare.Reason, r.rare.Stale = "", false
		r.rare.Run = jobs.Run{Number: 1, Attempt: attempts, Earlier: r.rare.Run.Failed(), Scheduled: p.st.Now()}
		p.pending++
		if err := p.holdAgain(ctx, r); err != nil {
			return err
		}
		if err := p.put(ctx, taskKey(r.num), r); err != nil {
			return err
		}
		if err := p.emit(ctx, EventReplayed, r); err != nil {
			return err
		}
		return p.join(ctx, r)
	})
}

// discardDead makes dead letters cancelled tasks.
func (p *partition) discardDead(ctx context.Context, part lettersPart) (lettersTaken, error) {
	return p.withLetters(ctx, part, func(ctx context.Context, r *row) error {
		p.count(Cancelled)
		if err := p.tellCancelled(ctx, r); err != nil {
			return err
		}
		r.endedAt, r.rare.Webhook = p.st.Now().UnixNano(), nil // the outcome that was posted is its death
		if err := p.keepOutcome(ctx, *r, Cancelled); err != nil {
			return err
		}
		return p.dropPhases(ctx, r.num)
	})
}

// letterData is DeadLetter.Data of a task in the list of all dead work.
type letterData struct {
	Task  TaskID `json:"task"`
	Key   string `json:"key,omitempty"`
	Queue string `json:"queue,omitempty"`
}

// letterBytes is about how many bytes the letter of a dead task takes in the list of
// all dead work, beside its names and its error.
const letterBytes = 400

// bury adds a dead task to the list of all dead work. The caller stores the row
// afterwards, because it has the number of the letter then.
func (p *partition) bury(ctx context.Context, r *row) (err error) {
	data, err := json.Marshal(letterData{p.id(r.num), r.key, r.queue})
	if err != nil {
		return err
	}
	run := r.run()
	r.letter, err = p.st.Driver().Bury(ctx, object.DeadLetter{
		Kind: DeadTask, Verb: "Pool.Replay or Pool.DiscardDead", Data: data,
		Scheduled: run.Scheduled, Died: timeOf(r.endedAt), Attempts: run.Failed(), Crashes: run.Cuts,
		LastError: run.LastError, Reason: string(r.rare.Reason), Stack: r.rare.Stack,
	})
	if err == nil {
		p.buried++
		p.dirty = true
	}
	return err
}

// exhume takes a task that is dead no more out of the list of all dead work. A
// dead task of a store of before that list has no letter.
func (p *partition) exhume(ctx context.Context, r *row) error {
	if r.letter == 0 {
		return nil
	}
	if err := p.st.Driver().Exhume(ctx, r.letter); err != nil {
		return err
	}
	r.letter = 0
	p.buried--
	return nil
}

// checkLetters finds out whether dead tasks may lack a row of another list: one in the list of all dead work, which a
// version without it has not written, or one in the index of the Retention, which the Config has not had before.
func (p *partition) checkLetters() {
	if p.set.ages() && p.dead == 0 {
		p.whole = 1
	}
	p.unmended = p.buried < p.dead
	p.unmended = p.unmended || p.set.ages() && p.whole == 0
}

// mendLetters gives dead tasks the rows that they lack, as many as fit well in a batch. The
// constructor calls it, and then the alarm of the partition until it has seen all. A task with a
// letter that does not fit at present stays without.
func (p *partition) mendLetters(ctx context.Context) error {
	written, err := p.turnBytes(ctx)
	most := p.mergeBytes() / 4
	if err != nil || written > most {
		return err
	}
	rows, err := p.letters(ctx, page{After: p.mendedTo, Limit: max(1, most/taskBytes)}, most)
	if err != nil {
		return err
	}
	for _, r := range rows {
		p.mendedTo = r.num
		if err := p.mendFiled(ctx, r); err != nil {
			return err
		}
		if fits, err := p.fitsLetter(ctx, r); err != nil {
			return err
		} else if r.letter != 0 || !fits {
			continue
		}
		if err := p.bury(ctx, r); err != nil {
			return err
		}
		if err := p.put(ctx, deadKey(r.num), r); err != nil {
			return err
		}
	}
	if p.unmended = len(rows) > 0; !p.unmended && p.set.ages() && p.whole == 0 {
		p.whole, p.dirty = 1, true
	}
	return nil
}

// mendFiled puts a letter in the index of the Retention that it lacks.
func (p *partition) mendFiled(ctx context.Context, r *row) error {
	if !p.set.ages() || p.whole == 1 {
		return nil
	}
	if there, err := p.filed(ctx, r); there || err != nil {
		return err
	}
	return p.file(ctx, r, r.step())
}

// fitsLetter reports whether the turn has room for a letter of r and for its row.
func (p *partition) fitsLetter(ctx context.Context, r *row) (bool, error) {
	written, err := p.turnBytes(ctx)
	d, size := p.st.Driver(), r.size()+taskBytes
	return size < d.MaxValueBytes() && written+2*(size+letterBytes) < d.MaxBatchBytes(), err
}
