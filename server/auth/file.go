package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// maxFileBytes bounds the file of tokens, which is read as a whole: some 10,000 tokens.
const maxFileBytes = 4 << 20

// formatVersion is the version of the file. A file of another one is refused.
const formatVersion = 1

// stored is the content of the file of tokens.
type stored struct {
	Version int   `json:"version"`
	Tokens  []row `json:"tokens"`
}

// row is a token with its hash.
type row struct {
	Token
	SHA256 hash `json:"sha256"`
}

// of returns the row with an ID.
func (s *stored) of(id string) (int, *row) {
	for i := range s.Tokens {
		if s.Tokens[i].ID == id {
			return i, &s.Tokens[i]
		}
	}
	return -1, nil
}

// decode reads the content of the file and checks all rows. It refuses fields that it does not
// know, because a misspelled "expires" would be a token that never expires.
func decode(data []byte, separator string) (*stored, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	s := &stored{}
	if err := d.Decode(s); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.New("it is empty, or ends before its JSON does")
	} else if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more than one JSON value")
	}
	if s.Version != formatVersion {
		return nil, fmt.Errorf("the version is %d, and this program reads version %d", s.Version, formatVersion)
	}
	seen := make(map[string]bool, len(s.Tokens))
	for i := range s.Tokens {
		t := &s.Tokens[i]
		if err := t.check(separator); err != nil {
			return nil, err
		}
		if t.SHA256 == (hash{}) {
			return nil, fmt.Errorf("token %s (%q): the sha256 is missing", t.ID, t.Name)
		}
		if seen[t.ID] {
			return nil, fmt.Errorf("token %s (%q): the id is there twice", t.ID, t.Name)
		}
		seen[t.ID] = true
	}
	return s, nil
}

// encode is the content of the file.
func encode(s *stored) ([]byte, error) {
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil && len(data) >= maxFileBytes {
		err = fmt.Errorf("the file would have more than %d bytes: revoke tokens that are not used", maxFileBytes)
	}
	return append(data, '\n'), err
}

// stamp tells whether a file has changed since it was read.
type stamp struct {
	info fs.FileInfo // nil: there was no file
	// fresh says that the file was changed just before it was read. Another change could then have the
	// same time, because file systems count time in steps.
	fresh bool
}

// freshFor is longer than the steps in which file systems count time.
const freshFor = 2 * time.Second

// same reports whether the file of info is as it was when it was read, as far as can be seen.
func (s *stamp) same(info fs.FileInfo) bool {
	return s.info != nil && os.SameFile(s.info, info) && s.info.ModTime().Equal(info.ModTime()) &&
		s.info.Size() == info.Size() && s.info.Mode() == info.Mode()
}

// readFile reads the file of tokens. Its error is one line without the texts of tokens.
func readFile(path, separator string, now time.Time) (*stored, stamp, error) {
	s, st, err := readChecked(path, separator, now)
	switch {
	case err == nil:
		return s, st, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, st, fmt.Errorf("auth: file of tokens %s: %w: make it with: holdfast token add --file %[1]s", path, fs.ErrNotExist)
	}
	return nil, st, fmt.Errorf("auth: file of tokens %s: %s", path, redacted(err))
}

func readChecked(path, separator string, now time.Time) (*stored, stamp, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, stamp{}, err
	} else if !info.Mode().IsRegular() { // an open of a pipe would wait
		return nil, stamp{}, errors.New("it is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, stamp{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, stamp{}, err
	}
	if err := checkOwner(info); err != nil {
		return nil, stamp{}, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, stamp{}, err
	}
	if len(data) > maxFileBytes {
		return nil, stamp{}, fmt.Errorf("it has more than %d bytes", maxFileBytes)
	}
	s, err := decode(data, separator)
	return s, stamp{info: info, fresh: now.Sub(info.ModTime()) < freshFor}, err
}

// writeFile replaces the file that was read with a stamp: a crash leaves the old content or the
// new one. It returns errChanged if an editor, which knows no lock, has changed or removed the file
// meanwhile, because it would undo a revocation. The file keeps its owner, so that a change by root
// does not take it from the server. The caller has the lock.
func writeFile(path string, s *stored, read stamp) error {
	data, err := encode(s)
	if err != nil {
		return err
	}
	next := path + ".new"
	// One that a crash has left is of no use; the lock says that no process writes it now.
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = fill(f, path, data)
	if err = errors.Join(err, f.Close()); err == nil && !unchanged(path, &read) {
		err = errChanged
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return syncDir(filepath.Dir(path))
}

// unchanged reports whether the file is the one that was read, or still absent.
func unchanged(path string, read *stamp) bool {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return read.info == nil
	}
	return err == nil && read.same(info)
}

func fill(f *os.File, path string, data []byte) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil {
		if err := keepOwner(f, info); err != nil {
			return err
		}
	}
	return f.Sync()
}
