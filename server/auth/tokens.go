package auth

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// lookEvery is the time between two looks at the file. A look is one stat. unseen is how long a change
// of the file may stay unseen: from then on requests wait for the look that is under way.
const (
	lookEvery = 4 * time.Second
	unseen    = 5 * time.Second
)

// Options are the settings of a TokenFile. The zero value is fit for production.
type Options struct {
	// Create accepts that there is no file yet; the first Add makes it. Default: an error.
	Create bool
	// Separator ends each prefix of a token and of its grants. It must be that of the
	// server's Config. Default "/".
	Separator string
	// Logger takes a line if the file cannot be read, is gone, or cannot be written. Default:
	// slog.Default().
	Logger *slog.Logger
	// Seams are the clock and the executor. Rand is not used, because it is not for secrets.
	Seams seam.Seams
}

// TokenFile is an Authenticator with the tokens of a file, and with sessions made from them. Its
// methods may be called from any goroutine.
type TokenFile struct {
	path   string
	o      Options
	random io.Reader   // of secrets
	aead   cipher.AEAD // seals sessions
	forms  tries       // of the sign-in form
	bears  tries       // of bearer tokens

	view  atomic.Pointer[view] // the tokens that were read last
	looks sync.Mutex           // held by the goroutine that looks whether the file has changed
	told  string               // the last error of a look; guarded by looks
	uses  uses

	heard   sync.Mutex // guards changed
	changed []func(Change)
}

// Change tells which tokens a look at the file has found to be other than before, by their IDs in order. A
// token that was used is none of them.
type Change struct {
	Added, Revoked []string
	Edited         []string // another name, role, prefix, grants, time or secret
}

// OnChange has f called when this TokenFile sees that the tokens have changed: by Add and Revoke, and when a request
// comes after another process has changed the file. f must return soon, must not call the TokenFile, and may be called from any goroutine, once at a time.
func (f *TokenFile) OnChange(told func(Change)) {
	f.heard.Lock()
	defer f.heard.Unlock()
	f.changed = append(f.changed, told)
}

// tellChange calls the functions of OnChange if two views differ in a token.
func (f *TokenFile) tellChange(before, now *view) {
	var c Change
	for id, k := range now.known {
		switch old := before.known[id]; {
		case old == nil:
			c.Added = append(c.Added, id)
		case !k.sameAs(old):
			c.Edited = append(c.Edited, id)
		}
	}
	for id := range before.known {
		if now.known[id] == nil {
			c.Revoked = append(c.Revoked, id)
		}
	}
	if len(c.Added)+len(c.Edited)+len(c.Revoked) == 0 {
		return
	}
	for _, ids := range [][]string{c.Added, c.Edited, c.Revoked} {
		slices.Sort(ids)
	}
	f.heard.Lock()
	defer f.heard.Unlock()
	for _, told := range f.changed {
		told(c)
	}
}

// sameAs reports whether two rows are of one token, used at any time: whether the file has them alike, because a row
// that Add has shown may have an empty list where one that was read has none.
func (k *known) sameAs(old *known) bool {
	one, other := k.row, old.row
	one.LastUse, other.LastUse = time.Time{}, time.Time{}
	a, errA := json.Marshal(one)
	b, errB := json.Marshal(other)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// view is the content of the file as it was at a look. It does not change.
type view struct {
	known  map[string]*known // by ID
	stamp  stamp
	looked time.Time // of Seams.Steady
}

// known is a token that was read.
type known struct {
	row
	used *atomic.Int64 // seconds since 1970 of the last use; the same in all views
}

// lastUse is the later one of the last use in this process and that in the file.
func (k *known) lastUse() time.Time {
	if used := time.Unix(k.used.Load(), 0).UTC(); used.After(k.LastUse) && k.used.Load() != 0 {
		return used
	}
	return k.LastUse
}

var (
	// ErrBadToken says that Add got a token that cannot be one; its text says why.
	ErrBadToken = errors.New("auth: bad token")
	// ErrNoToken says that no token has an ID.
	ErrNoToken = errors.New("auth: there is no such token")

	errLocked  = errors.New("another process changes it")
	errChanged = errors.New("it was changed by hand meanwhile")
)

// Tokens returns an Authenticator with the tokens of a file, which Add and the command
// holdfast token make. It returns an error of one line if the file is absent, can be read or
// written by others, or has a token that is none, for example one with a prefix that does not end
// in the separator. The TokenFile must be closed, or else the last uses of up to a minute are
// not stored.
func Tokens(path string, o Options) (*TokenFile, error) {
	return tokensWith(path, o, rand.Reader)
}

func tokensWith(path string, o Options, random io.Reader) (*TokenFile, error) {
	if o.Separator == "" {
		o.Separator = "/"
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Seams = o.Seams.WithDefaults()
	aead, err := newSeal(random)
	if err != nil {
		return nil, err
	}
	f := &TokenFile{path: path, o: o, random: random, aead: aead}
	f.uses.file = f
	s, st, err := readFile(path, o.Separator, o.Seams.Clock.Now())
	if o.Create && errors.Is(err, fs.ErrNotExist) {
		s, err = &stored{Version: formatVersion}, nil
	}
	if err != nil {
		return nil, err
	}
	f.show(s, st, o.Seams.Steady())
	return f, nil
}

// Separator returns the separator with which the prefixes of all tokens end.
func (f *TokenFile) Separator() string { return f.o.Separator }

// Authenticate returns the principal of the bearer token of a request, or of the cookie of a
// session if the request has no bearer token.
func (f *TokenFile) Authenticate(r *http.Request) (Principal, error) {
	text, ok, err := bearer(r)
	if err != nil {
		return Principal{}, err
	}
	if !ok {
		return f.authenticateSession(r)
	}
	if k := f.find(text); k != nil {
		return f.accept(k), nil
	}
	return Principal{}, f.wrong(&f.bears, r)
}

// Find returns the principal of the token with an ID. That is no use of the token. It returns an error that matches
// ErrBadCredentials if there is none, or it has expired; a token that another process has revoked is found for up to 5 s.
func (f *TokenFile) Find(id string) (Principal, error) {
	k := f.current().known[id]
	if k == nil || k.expired(f.o.Seams.Clock.Now()) {
		return Principal{}, fmt.Errorf("%w: the token is revoked or expired", ErrBadCredentials)
	}
	return k.principal(), nil
}

// wrong counts a wrong token as a try of the address of a request, and returns its error.
func (f *TokenFile) wrong(t *tries, r *http.Request) error {
	if wait := t.take(addressOf(r.RemoteAddr), f.o.Seams.Steady()); wait > 0 {
		return &TooManyTriesError{wait}
	}
	return fmt.Errorf("%w: the token is wrong, revoked or expired", ErrBadCredentials)
}

// bearer returns the bearer token of a request, and whether it has one.
func bearer(r *http.Request) (text string, ok bool, err error) {
	switch values := r.Header.Values("Authorization"); len(values) {
	case 0:
		return "", false, nil
	case 1:
		scheme, text, _ := strings.Cut(values[0], " ")
		return strings.TrimSpace(text), strings.EqualFold(scheme, "Bearer"), nil
	}
	return "", false, fmt.Errorf("%w: the request has several headers Authorization", ErrBadCredentials)
}

// find returns the token with a text, or nil if there is none that is valid now.
func (f *TokenFile) find(text string) *known {
	k := f.current().known[idOf(text)]
	if h := hashOf(text); k == nil || !k.SHA256.equal(&h) || k.expired(f.o.Seams.Clock.Now()) {
		return nil
	}
	return k
}

// accept notes the use of a token and returns its principal.
func (f *TokenFile) accept(k *known) Principal {
	f.uses.note(k, f.o.Seams.Clock.Now())
	return k.principal()
}

// Add makes a token of the name, the role, the prefix, the grants and the time of expiry of t, and
// stores it. It returns the token as it is stored, and the text that requests bring, which is not
// stored anywhere, so this is the only time that it is shown. It returns ErrBadToken if the name, a prefix, a grant or
// the time of expiry cannot be that of a token. It waits for another process that changes the
// file, for up to 5 s.
func (f *TokenFile) Add(t Token) (added Token, text string, err error) {
	now := f.o.Seams.Clock.Now().UTC().Truncate(time.Second)
	t.Created, t.Expires, t.LastUse = now, t.Expires.UTC().Truncate(time.Second), time.Time{}
	if t.ID, text, err = draw(f.random); err != nil {
		return Token{}, "", fmt.Errorf("auth: %w", err)
	}
	if t.expired(now) {
		return Token{}, "", fmt.Errorf("%w %q: it would expire at %s, which is not in the future", ErrBadToken, t.Name, t.Expires.Format(time.RFC3339))
	}
	if problem := t.problem(f.o.Separator); problem != "" {
		return Token{}, "", fmt.Errorf("%w %q: %s", ErrBadToken, t.Name, problem)
	}
	err = f.change(func(s *stored) error {
		s.Tokens = append(s.Tokens, row{t, hashOf(text)})
		return nil
	})
	if err != nil {
		return Token{}, "", err
	}
	return t, text, nil
}

// Revoke removes the token with an ID from the file. It returns ErrNoToken if there is none. This
// TokenFile refuses the token and its sessions at once, that of another process within 5 s. It
// waits for another process that changes the file, for up to 5 s.
func (f *TokenFile) Revoke(id string) error {
	return f.change(func(s *stored) error {
		i, t := s.of(id)
		if t == nil {
			return fmt.Errorf("%w: %s", ErrNoToken, redacted(fmt.Errorf("%q", id)))
		}
		s.Tokens = slices.Delete(s.Tokens, i, i+1)
		return nil
	})
}

// List returns all tokens, also those that have expired, in the order of their creation.
func (f *TokenFile) List() []Token {
	var all []Token
	for _, k := range f.current().known {
		t := k.Token
		t.Grants, t.LastUse = slices.Clone(t.Grants), k.lastUse()
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Token) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}

// Close stores the last uses and ends the work in the background. The TokenFile may be used
// after it, but notes no uses any more.
func (f *TokenFile) Close() error { return f.uses.close() }

// current returns the tokens as they are in the file, or were less than unseen ago. While one goroutine looks,
// the others go on with the tokens that were read last for as long as that is allowed.
func (f *TokenFile) current() *view {
	now := f.o.Seams.Steady()
	v := f.view.Load()
	if now.Sub(v.looked) < lookEvery {
		return v
	}
	if !f.looks.TryLock() {
		if now.Sub(v.looked) < unseen {
			return v
		}
		f.looks.Lock()
	}
	defer f.looks.Unlock()
	if v := f.view.Load(); now.Sub(v.looked) < lookEvery {
		return v
	}
	f.look(now)
	return f.view.Load()
}

// look reads the file if it has changed. f.looks is held.
func (f *TokenFile) look(now time.Time) {
	v := *f.view.Load()
	v.looked = now
	info, err := os.Stat(f.path)
	if err == nil && !v.stamp.fresh && v.stamp.same(info) {
		f.view.Store(&v)
		return
	}
	s, st, err := readFile(f.path, f.o.Separator, f.o.Seams.Clock.Now())
	switch {
	case err == nil:
		f.told = ""
		f.show(s, st, now)
	case errors.Is(err, fs.ErrNotExist):
		if len(v.known) > 0 {
			f.tell("the file of tokens is gone, so all tokens are revoked", err)
		}
		f.show(&stored{}, stamp{}, now)
	default:
		f.tell("the file of tokens cannot be read, so the tokens that were read last stay valid", err)
		v.stamp = stamp{}
		f.view.Store(&v)
	}
}

// tell logs an error of a look, once. f.looks is held.
func (f *TokenFile) tell(text string, err error) {
	if f.told != err.Error() {
		f.told = err.Error()
		f.o.Logger.Error(text, "file", f.path, "error", err)
	}
}

// show makes tokens the current ones. They keep their last uses. Callers that can run beside
// others hold f.looks.
func (f *TokenFile) show(s *stored, st stamp, now time.Time) {
	next := &view{known: make(map[string]*known, len(s.Tokens)), stamp: st, looked: now}
	for _, r := range s.Tokens {
		k := &known{row: r, used: new(atomic.Int64)}
		if v := f.view.Load(); v != nil && v.known[r.ID] != nil {
			k.used = v.known[r.ID].used
		}
		next.known[r.ID] = k
	}
	if before := f.view.Swap(next); before != nil {
		f.tellChange(before, next)
	}
}

// lockWait is how long a change waits for that of another process, and lockPause how long between two
// looks. A change takes some milliseconds.
const (
	lockWait  = 5 * time.Second
	lockPause = 10 * time.Millisecond
)

// rewrites bounds how often a change is made again because an editor has changed the file meanwhile.
const rewrites = 3

// change reads the file, changes it by fn and writes it, all under its lock, so that no change of
// another process is lost. The error of fn is returned as it is, and then nothing is written.
func (f *TokenFile) change(fn func(*stored) error) error {
	path := resolved(f.path)
	unlock, err := f.lock(path)
	if err != nil {
		return fmt.Errorf("auth: file of tokens %s: %w", f.path, err)
	}
	err = errChanged
	for try := 0; errors.Is(err, errChanged) && try < rewrites; try++ {
		err = f.rewrite(path, fn)
	}
	if closing := unlock(); err == nil && closing != nil {
		err = fmt.Errorf("auth: file of tokens %s: %w", f.path, closing)
	}
	return err
}

// rewrite is change under the lock.
func (f *TokenFile) rewrite(path string, fn func(*stored) error) error {
	s, read, err := readFile(path, f.o.Separator, f.o.Seams.Clock.Now())
	if f.o.Create && errors.Is(err, fs.ErrNotExist) {
		s, err = &stored{Version: formatVersion}, nil
	}
	if err != nil {
		return err
	}
	if err := fn(s); err != nil {
		return err
	}
	if err := writeFile(path, s, read); err != nil {
		return fmt.Errorf("auth: file of tokens %s: write: %w", f.path, err)
	}
	f.looks.Lock()
	defer f.looks.Unlock()
	f.show(s, stamp{}, f.o.Seams.Steady()) // the next look reads it
	return nil
}

// lock waits for the lock of the file.
func (f *TokenFile) lock(path string) (unlock func() error, err error) {
	for began := f.o.Seams.Steady(); ; {
		unlock, err := tryLock(path)
		if !errors.Is(err, errLocked) || f.o.Seams.Steady().Sub(began) >= lockWait {
			return unlock, err
		}
		if err := f.o.Seams.Sleep(context.Background(), lockPause); err != nil {
			return nil, err
		}
	}
}
