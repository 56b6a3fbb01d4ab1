package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// Inspection checks all files of a database at rest, and several tables at a time.
type Inspection struct {
	// Found is called with the name of each file that is damaged or missing, at most once
	// for each and in the order of the files, and one line that says so. An error of Found ends
	// the inspection. Required.
	Found func(file, text string) error
	// Progress is called after each part of a file with the bytes that have been checked and
	// those of all files, by one goroutine after another, and not after the end of the context.
	// Default: not called.
	Progress func(doneBytes, totalBytes int64)
	// Checked tells which damage CheckTable has found in a table that was not changed since, nil for none; ok is false
	// for a table that was not checked. Default: none was.
	Checked func(table string) (damage error, ok bool)
	// Seams start the goroutines. Default: as many as there are processors.
	Seams seam.Seams
}

// Inspect checks the files of the database in dir and changes none of them: logs and manifest
// against their sums, the end of the newest log, and each block of each table against its own
// checksum. A table that the database no longer uses is passed over, because a crash may have
// left a part of it. The caller holds Dir.LockShared. An error is that of ctx, of Found, or of a
// file that this process may not read. The memory is that of the log, which is replayed, and of
// the largest block for each processor.
func Inspect(ctx context.Context, dir string, o Options, i Inspection) error {
	e, err := InspectAndOpen(ctx, dir, o, i)
	if e == nil {
		return err
	}
	return errors.Join(err, e.Close())
}

// InspectAndOpen is Inspect, and leaves the database open for reading as OpenReadOnly does, because the last step of the
// inspection is to open it. The store is nil if Found was told of something, and with an error.
func InspectAndOpen(ctx context.Context, dir string, o Options, i Inspection) (*Store, error) {
	o.FS, o.Lock, o.MustExist, o.readOnly = readOnlyFS{fileSystem(o.FS)}, nil, true, true
	v := &inspector{Inspection: i, ctx: ctx, dir: Dir{o.FS, dir}, reported: make(map[string]bool)}
	return v.run(o)
}

// inspector is an Inspection under way.
type inspector struct {
	Inspection
	ctx      context.Context
	dir      Dir
	reported map[string]bool // the files that Found was told of
	total    int64           // bytes

	counting sync.Mutex // guards done, and lets one Progress run at a time
	done     int64      // bytes
}

// run checks logs and manifest, then learns which tables are in use, and checks these.
func (v *inspector) run(o Options) (*Store, error) {
	s, whole, err := v.manifest(o)
	if err != nil {
		return nil, err
	}
	tables, err := v.tables(o, whole)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Concat(s.names(), tables) {
		v.total += v.size(name, s)
	}
	if err := v.logs(s); err != nil {
		return nil, err
	}
	check := func(i int) (damage, err error) {
		size := v.size(tables[i], s)
		if v.Checked != nil {
			if damage, ok := v.Checked(tables[i]); ok {
				return damage, v.progress(size)
			}
		}
		return v.table(tables[i], size)
	}
	tell := func(i int, damage error) error {
		if damage == nil {
			return nil
		}
		return v.report(tables[i], damage)
	}
	if err := seam.Ordered(v.Seams, "inspect", len(tables), check, tell); err != nil {
		return nil, err
	}
	if len(v.reported) > 0 {
		return nil, nil
	}
	return v.replay(o, s)
}

// replay opens the database with its logs, all of which seem whole, or reports the error of that.
func (v *inspector) replay(o Options, s *sums) (e *Store, err error) {
	log := &logger{log: o.Log}
	defer log.recoverFatal(&err)
	e, err = openPebble(v.dir.Path, o, s, log)
	if err != nil {
		return nil, v.notOpened(err)
	}
	return e, nil
}

// manifest reads the sums file and compares the manifest with it, because the manifest tells
// which tables are in use. It reports the damage, and returns no sums if that is in their file.
func (v *inspector) manifest(o Options) (s *sums, whole bool, err error) {
	none := &sums{lines: make(map[string]sum)}
	manifest, err := findManifest(v.dir.Path, o)
	if err != nil {
		return none, false, v.report(markerFile(err), err)
	}
	if s, err = loadSums(v.dir.FS, v.dir.Path, manifest); err != nil {
		return none, true, v.report(SumsFile, err)
	}
	if err := s.compare(v.dir.FS, v.dir.Path, manifest); err != nil {
		return s, false, v.report(manifest, err)
	}
	return s, true, nil
}

// markerFile is the file that an error of findManifest tells of.
func markerFile(err error) string {
	return regexp.MustCompile(`marker\.[a-z-]+|$`).FindString(err.Error())
}

// size is how many bytes of a file are checked, as far as that is known.
func (v *inspector) size(name string, s *sums) int64 {
	if line, ok := s.lines[name]; ok && line.length > 0 {
		return line.length
	}
	info, err := v.dir.FS.Stat(v.dir.Join(name))
	if err != nil {
		return 0
	}
	return info.Size()
}

// report tells of an error of a file, unless that was told before, or unless the file may not
// be read.
func (v *inspector) report(name string, err error) error {
	switch {
	case v.ctx.Err() != nil:
		return v.ctx.Err()
	case errors.Is(err, fs.ErrPermission):
		return err
	case v.reported[name]:
		return nil
	}
	v.reported[name] = true
	return v.Found(name, oneLine(err.Error()))
}

// progress counts bytes that were checked, unless the context has ended.
func (v *inspector) progress(bytes int64) error {
	v.counting.Lock()
	defer v.counting.Unlock()
	if err := v.ctx.Err(); err != nil {
		return err
	}
	v.done += bytes
	if v.Progress != nil {
		v.Progress(min(v.done, v.total), v.total)
	}
	return nil
}

// logs compares logs and manifest with their sums, and looks at the end of the newest log.
func (v *inspector) logs(s *sums) error {
	for _, name := range s.names() {
		if err := s.compare(v.dir.FS, v.dir.Path, name); err != nil {
			if err := v.report(name, err); err != nil {
				return err
			}
		}
		if err := v.progress(v.size(name, s)); err != nil {
			return err
		}
	}
	if err := checkTail(v.dir.FS, v.dir.Path, s); err != nil {
		path, _, listErr := newestLog(v.dir.FS, v.dir.Path)
		if listErr != nil {
			return listErr
		}
		return v.report(v.dir.FS.PathBase(path), err)
	}
	return nil
}

// missingTable is how Pebble tells of a table that is missing or has another length.
var missingTable = regexp.MustCompile(`L\d+: (\d+): .*`)

// tables returns the names of the tables in use. If the manifest is damaged, or if the database
// cannot be opened, which is reported, it returns those of all tables in the directory.
func (v *inspector) tables(o Options, whole bool) (names []string, err error) {
	if whole {
		names, err = v.inUse(o)
		if err == nil {
			return names, nil
		}
		if err := v.notOpened(err); err != nil {
			return nil, err
		}
	}
	all, err := v.dir.List()
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(all, func(name string) bool { return !strings.HasSuffix(name, ".sst") || v.reported[name] })
	slices.Sort(names)
	return names, nil
}

// inUse opens the database for reading without its logs, which may be damaged, and returns the
// names of the tables that it uses.
func (v *inspector) inUse(o Options) (names []string, err error) {
	log := &logger{log: o.Log}
	defer log.recoverFatal(&err)
	o.FS = withoutLogs{o.FS}
	e, err := openPebble(v.dir.Path, o, &sums{lines: make(map[string]sum)}, log)
	if err != nil {
		return nil, err
	}
	levels, err := e.db.SSTables()
	for _, level := range levels {
		for _, t := range level {
			names = append(names, fmt.Sprintf("%s.sst", t.BackingSSTNum))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), errors.Join(err, e.Close())
}

// withoutLogs is a directory in which Pebble finds no log, and so replays none.
type withoutLogs struct{ vfs.FS }

func (fsys withoutLogs) List(dir string) ([]string, error) {
	names, err := fsys.FS.List(dir)
	return slices.DeleteFunc(names, isLog), err
}

// notOpened reports each table that the error of an opening tells of, or the file that was read
// last.
func (v *inspector) notOpened(err error) error {
	told := false
	for line := range strings.SplitSeq(err.Error(), "; ") {
		if m := missingTable.FindStringSubmatch(line); m != nil {
			told = true
			if err := v.report(m[1]+".sst", fmt.Errorf("%w: %s", engine.ErrCorrupt, m[0])); err != nil {
				return err
			}
		}
	}
	if told {
		return nil
	}
	name, listErr := v.named(err)
	if listErr != nil {
		return listErr
	}
	return v.report(name, err)
}

// named is the file that an error names.
func (v *inspector) named(err error) (string, error) {
	names, listErr := v.dir.List()
	slices.Sort(names)
	for _, name := range names {
		if strings.Contains(err.Error(), name) {
			return name, nil
		}
	}
	return "", listErr
}
