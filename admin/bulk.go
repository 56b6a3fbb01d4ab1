package admin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// ErrNoToken says that a token is unknown, used, or older than TokenLife: count again.
var ErrNoToken = errors.New("admin: no such token, or not any more: count again")

// TokenLife is how long the token of a Count can be used.
const TokenLife = 10 * time.Minute

// maxTokens bounds the tokens that wait to be used, the oldest of which goes first, and maxTokenBytes the
// texts of the caller that each of them keeps.
const (
	maxTokens     = 1000
	maxTokenBytes = 64 << 10
)

// bulkEvery is the time between two jobs or letters of a bulk verb, 500 in a second, so that the
// work which it makes due does not fall on one moment.
const bulkEvery = time.Second / 500

// maxCounted is how many jobs or letters a count counts.
const maxCounted = 100_000

// Count is the answer of a count: how much a bulk verb would act on.
type Count struct {
	Matches int  `json:"matches"`
	More    bool `json:"more,omitempty"` // there are more than that
	// Damaged is how many dead letters cannot be read. They are in no match, and Run refuses them.
	// LastError is the error of the last of them, which names it.
	Damaged   int    `json:"damaged,omitempty"`
	LastError string `json:"lastError,omitempty"`

	At time.Time `json:"at,omitzero"` // only work that died, or came to rest, before it counts; zero: of a directory
	// Token is for Run. It binds the verb, the filter and the time. It is no secret, but a sign
	// that the caller knows the count. It is empty for a directory.
	Token string `json:"token,omitempty"`
}

// Progress is how far a bulk verb is.
type Progress struct {
	Done int `json:"done"` // jobs or letters that the verb has acted on
	// Skipped were not acted on, because they have changed since they were counted, or because
	// a replay would replace the alarm that their object has set meanwhile.
	Skipped int `json:"skipped,omitempty"`
	// Refused were refused by their job, or are damaged. LastError is the newest of these errors.
	Refused   int    `json:"refused,omitempty"`
	LastError string `json:"lastError,omitempty"`
}

// Bulk is a verb over many jobs or dead letters that was counted, and how far it has come. Step changes it. Its JSON
// can be stored, so that another process goes on with it.
type Bulk struct {
	Verb string `json:"verb"` // of jobs; of dead letters: replay or discard
	Arg  []byte `json:"arg,omitempty"`
	// Jobs chooses jobs, and Dead dead letters if Jobs has no class. The After of that one is the place that the verb
	// has reached.
	Jobs JobsOptions               `json:"jobs,omitzero"`
	Dead object.DeadLettersOptions `json:"dead,omitzero"`
	At   time.Time                 `json:"at"` // of the count

	Progress Progress `json:"progress,omitzero"`
	Ended    bool     `json:"ended,omitempty"` // it has acted on all
}

// The verbs of dead letters.
const (
	replayDead  = "replay"
	discardDead = "discard"
)

// kept is a bulk verb under its token.
type kept struct {
	made time.Time // by the steady clock
	bulk Bulk
}

// tokens are the bulk verbs that were counted and not run.
type tokens struct {
	mu    sync.Mutex // guards the fields below; held for no wait
	all   map[string]kept
	order []string // the tokens of all, and some that were used, the oldest first
}

// put keeps a bulk verb under a token, and forgets those that are too old.
func (t *tokens) put(token string, b kept) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = make(map[string]kept)
	}
	for len(t.order) > 0 && (len(t.order) == maxTokens || !t.waits(t.order[0], b.made)) {
		delete(t.all, t.order[0])
		t.order = t.order[1:]
	}
	t.all[token], t.order = b, append(t.order, token)
}

// waits reports whether a token can be used. t.mu is held.
func (t *tokens) waits(token string, now time.Time) bool {
	b, ok := t.all[token]
	return ok && now.Sub(b.made) < TokenLife
}

// take removes the bulk verb of a token and returns it, if it is not too old.
func (t *tokens) take(token string, now time.Time) (Bulk, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, ok := t.all[token], t.waits(token, now)
	delete(t.all, token)
	if !ok {
		return Bulk{}, fmt.Errorf("%w: %q", ErrNoToken, token)
	}
	return b.bulk, nil
}

// counted completes a count, with a token for the verb if there is a host.
func (a *Admin) counted(c Count, b Bulk) Count {
	if a.host != nil {
		c.At, c.Token = b.At, a.host.NewName()
		a.tokens.put(c.Token, kept{a.host.Seams().Steady(), b})
	}
	return c
}

// errSkipped is the error of an act that left its job or letter as it is.
var errSkipped = errors.New("skipped")

// Run runs the bulk verb that was counted, at most 500 times in a second, and returns how far it
// has come. told, if it is not nil, is called after each job or letter. Run acts only on work that
// died, or came to rest, before the count, and looks at that again right before each act. It does not
// see a change between that look and the turn of the act, for example by a verb that waits for its turn
// already: the act is then done if the job takes it. Only a replay of an alarm looks in its own turn,
// so it never replaces another alarm.
//
// It goes on after a job or a letter that refuses, is damaged or is deleted. Damaged letters of the class and the
// object of the filter are refused, even if other fields of the filter leave them out. It ends when all are
// done, when ctx ends, when the host fails or shuts down, when the disk is nearly full, or when the
// list of jobs or letters cannot be read; a count then begins the rest anew. The token is used up in
// any case. Error: ErrNoToken, ErrNoProgram, or the reason for an early end.
func (a *Admin) Run(ctx context.Context, token string, told func(Progress)) (p Progress, err error) {
	b, err := a.Take(token)
	for err == nil && !b.Ended {
		b, err = a.Step(ctx, b, told)
	}
	return b.Progress, err
}

// Take uses the token up, as Run does, and returns its verb, to be run by Step. Error: ErrNoToken or ErrNoProgram.
func (a *Admin) Take(token string) (Bulk, error) {
	if a.host == nil {
		return Bulk{}, ErrNoProgram
	}
	return a.tokens.take(token, a.host.Seams().Steady())
}

// stepped is how many jobs or letters a Step acts on.
const stepped = 100

// Step runs the next part of a bulk verb as Run does, up to 100 jobs or letters, and returns it with the place behind
// them. So a caller that stores the result can go on after an end of the process: a part that is run twice
// passes over the jobs and letters that it has acted on. With an error, as of Run, the place stays, and the Progress is
// that of the acts until then.
func (a *Admin) Step(ctx context.Context, b Bulk, told func(Progress)) (Bulk, error) {
	if a.host == nil {
		return b, ErrNoProgram
	}
	items, behind, err := a.part(ctx, b)
	if err != nil {
		return b, err
	}
	seams := a.host.Seams()
	last := seams.Steady()
	for _, i := range items {
		if err := seams.Sleep(ctx, last.Add(bulkEvery).Sub(seams.Steady())); err != nil {
			return b, err
		}
		last = seams.Steady()
		if err := b.Progress.note(ctx, a.act(ctx, &b, i)); err != nil {
			return b, err
		}
		if told != nil {
			told(b.Progress)
		}
	}
	behind.Progress = b.Progress
	return behind, nil
}

// note counts the outcome of one act, or returns the error that ends the bulk verb.
func (p *Progress) note(ctx context.Context, err error) error {
	switch {
	case err == nil:
		p.Done++
	case errors.Is(err, errSkipped), errors.Is(err, ErrArmed), errors.Is(err, jobs.ErrNotFound), errors.Is(err, jobs.ErrIllegalMove), errors.Is(err, object.ErrNoDeadLetter):
		p.Skipped++
	case ctx.Err() != nil, ofHost(err):
		return err
	default:
		p.Refused++
		p.LastError = err.Error()
	}
	return nil
}
