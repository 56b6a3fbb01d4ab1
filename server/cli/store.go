package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/admin/transfer"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/internal/socket"
	"github.com/holdfast-dev/holdfast/storage"
)

// read opens the store of --dir to be read and gives it to fn.
func (s *session) read(fn func(*storage.Store, object.Reader) error) error {
	store, err := storage.OpenReadOnly(storage.Options{Dir: s.place.dir})
	if err != nil {
		return s.unopened(err)
	}
	err = fn(store, object.NewReader(store))
	return errors.Join(refused(err), unopened(store.Close()))
}

// open opens the store of --dir as the program does, gives the host to fn, and ends in order. Alarms
// fire and jobs run meanwhile. ended, if there is one, is called after the end, if that was in
// order. verb is for the error of a program without classes.
func (s *session) open(ctx context.Context, verb string, fn func(*object.Host) error, ended func(*object.Host)) error {
	if len(s.program.Definitions) == 0 {
		return &exit{Refused, fmt.Errorf("%s knows no classes, so it cannot run their code: use the %s of the program that defines them", s.program.Name, verb)}
	}
	if err := s.directoryOnly(verb); err != nil {
		return err
	}
	if err := s.exists(); err != nil {
		return err
	}
	o := s.program.Options
	o.Dir = s.place.dir
	host, err := object.Open(o, s.program.Definitions...)
	if err != nil {
		return s.unopened(err)
	}
	err = fn(host)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	closing := host.Shutdown(stop)
	if closing == nil && ended != nil {
		ended(host)
	}
	return errors.Join(err, unopened(closing))
}

// exists refuses a directory that holds no store, because Open would make one in it.
func (s *session) exists() error {
	store, err := storage.OpenReadOnly(storage.Options{Dir: s.place.dir})
	if err != nil {
		return s.unopened(err)
	}
	return unopened(store.Close())
}

// unopened is the error of the store of --dir, with the socket of the process that has it, if there is one.
func (s *session) unopened(err error) error {
	at, none := socket.Place(socket.Of(s.place.dir))
	if errors.Is(err, storage.ErrLocked) && none == nil && socket.Answers(at) {
		err = fmt.Errorf("%w; its server answers on the socket %q", err, at)
	}
	return unopened(err)
}

// refused gives the error of a look its code of exit: an argument that the store refuses is a
// usage error, and any other means that the store cannot be read.
func refused(err error) error {
	var e *exit
	switch {
	case err == nil, errors.As(err, &e):
		return err
	case errors.Is(err, context.Canceled):
		return err
	}
	if code, ok := codeOf(err); ok {
		return &exit{code, err}
	}
	switch {
	case errors.Is(err, object.ErrNoObject), errors.Is(err, transfer.ErrMessages), errors.Is(err, transfer.ErrNotCarried):
		return &exit{Refused, err}
	case errors.Is(err, object.ErrBadName), errors.Is(err, object.ErrNoDeadLetter), errors.Is(err, storage.ErrBadCursor):
		return &exit{Usage, err}
	}
	return unopened(err)
}

// idOf is the object that an argument names: its class, a slash, and its name, which may hold
// more slashes.
func idOf(arg string) (storage.ID, error) {
	class, name, ok := strings.Cut(arg, "/")
	id := storage.ID{Class: class, Name: name}
	if !ok {
		return id, usage("%q is no object: write CLASS/NAME", arg)
	}
	if err := id.Validate(); err != nil {
		return id, usage("%q is no object: %v", arg, err)
	}
	return id, nil
}

// page refuses the length of a page that no list has.
func page(limit int) error {
	if limit < 1 || limit > object.MaxPage {
		return usage("--limit is %d: it must lie between 1 and %d", limit, object.MaxPage)
	}
	return nil
}

// timeOf is the time of a flag: RFC 3339, or how long ago, such as 24h.
func timeOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usage("%s is %q: write a time such as 2026-11-22T08:00:00Z, or how long ago, such as 24h", flag, text)
	}
	return t, nil
}

// plural is a count with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}
