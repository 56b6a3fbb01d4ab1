// Command oldstore makes a small store that has a row of each kind, as a process
// leaves it that is killed while it works:
//
//	go run ./internal/prove/oldstore internal/prove/oldstore/testdata/format-3
//
// writes format-3.zip with the files of the store and format-3.txt with its rows.
// The test of this package opens the store that an earlier version made and reads
// everything back, so that a change of the code that would misread an old store
// fails. Make a new pair when the format version grows, and never replace one of
// the present version: the point of it is that earlier code wrote it.
package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: oldstore PATH, which makes PATH.zip and PATH.txt")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "oldstore:", err)
		os.Exit(1)
	}
}

// run makes the store, copies it while the process is alive, and writes both files.
func run(path string) (err error) {
	dir, err := os.MkdirTemp("", "oldstore")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	crashed := filepath.Join(dir, "crashed")
	if err := makeStore(filepath.Join(dir, "live"), crashed); err != nil {
		return err
	}
	if err := pack(path+".zip", crashed); err != nil {
		return err
	}
	store, err := storage.Open(storage.Options{Dir: crashed, MinFreeBytes: -1})
	if err != nil {
		return err
	}
	rows, err := dump(store)
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	return os.WriteFile(path+".txt", []byte(rows), 0o644)
}

// makeStore fills a store in dir, and copies it while two works are under way.
func makeStore(dir, crashed string) error {
	ctx := context.Background()
	began := make(chan string, 2)
	p := newProgram(func(ctx context.Context, name string) error {
		began <- name
		<-ctx.Done()
		return ctx.Err()
	})
	host, err := p.open(dir, madeAt)
	if err != nil {
		return err
	}
	if err := p.fill(ctx, host); err != nil {
		return err
	}
	if _, err := p.polls.Start(ctx, host, "stuck", 41); err != nil {
		return err
	}
	if _, err := p.mails.Enqueue(ctx, host, "stuck"); err != nil {
		return err
	}
	for range cap(began) {
		<-began
	}
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		return err
	}
	return end(host)
}

// end shuts a host down and does not wait for its works, which are interrupted.
func end(host *object.Host) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := host.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// pack writes the files of dir into a zip file.
func pack(path, dir string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := zip.NewWriter(f)
	return errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), f.Close())
}
