package shardlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// lateAfter is how long after its end an engine may stop the shard for a loss. It asks the log for as long, and puts a loss that it finds
// later down in the directory, because a healthy shard must not stop for a receipt of long ago.
const lateAfter = time.Hour

// # The way of a loss
//
//  1. A process meets it: an Open whose view is ahead of the log, an owner whose append is refused, or a reader at an owner.
//  2. An owner that has failed and does not know yet whether the log has its last record asks the log again and again, in a goroutine
//     that lives on after the store is dead.
//  3. The directory puts the shard into quarantine, so that no owner appends to the log without the lost records.
//  4. The records that the log lacks and the engine has kept go into a file.

// reported is the error of an Open. It tells the directory of a loss that the view shows, once for each view, because the view
// shows the loss for as long as its directory is there, also when an operator has accepted the loss.
func (e *Engine) reported(err error) error {
	l := lossOf(err)
	if l == nil || e.o.Directory == nil {
		return err
	}
	told, readErr := readPlace(e.view, lossKey)
	if readErr != nil || told == l.place {
		return errors.Join(err, readErr)
	}
	e.o.Seams.At("quarantine", "")
	e.o.Logger.Error("the log lacks a record that it acknowledged", "shard", e.o.Shard, "position", l.at, "error", l)
	tellErr := e.repeat("quarantine", func(ctx context.Context) error {
		return e.o.Directory.Quarantine(ctx, e.o.Shard, l.where(e.o.Owner))
	})
	if tellErr == nil {
		tellErr = keepLoss(e.view, l.place)
	}
	return errors.Join(err, tellErr)
}

// ends ends the engine because of an error of the log, and has a goroutine look for a loss and tell of it. The caller has the token.
func (e *Engine) ends(err error) error {
	l := lossOf(err)
	if e.last > 0 && (l != nil || !e.compared) && (e.o.Directory != nil || e.o.RescueDir != "") {
		i := &inquiry{
			asker: newAsker(e.o, e.o.Context, lateAfter), acked: place{e.last, e.chain}, term: e.term,
			met: e.o.Seams.Steady(), kept: &e.kept, dir: e.o.files.Dir(e.o.RescueDir),
		}
		e.o.Seams.Executor.Go("receipt", func() { i.run(l) })
	}
	return e.fail(err)
}

// inquiry looks whether the log has the last record that it acknowledged to an engine, after the end of that.
type inquiry struct {
	asker
	acked place
	term  uint64
	met   time.Time // steady; when the engine ended
	kept  *kept
	dir   pebblestore.Dir // of rescue files
}

// run looks for a loss, unless it is known, and tells of it. It ends with the answer of the log and the directory, with
// Options.Context, or when lateAfter has passed without an answer to one call.
func (i *inquiry) run(l *loss) {
	log := i.o.Logger.With("shard", i.o.Shard, "position", i.acked.at)
	if l == nil {
		err := i.repeat("receipt", func(ctx context.Context) error {
			_, lost, err := i.look(ctx, i.acked)
			l = lossOf(lost)
			return err
		})
		if err != nil {
			log.Error("whether the log has the last record that it acknowledged is not known", "error", err)
			return
		}
	}
	if l == nil {
		return
	}
	log.Error("the log lacks a record that it acknowledged", "error", l)
	if err := i.tell(l); err != nil {
		log.Error("the directory was not told that the log lacks a record", "error", err)
	}
	if i.o.RescueDir == "" {
		return
	}
	if path, err := i.rescue(); err != nil {
		log.Error("the records that the log lacks are in no file", "error", err)
	} else if path != "" {
		log.Error("the records that the log lacks are in a file: Directory.Recover puts them back", "file", path)
	}
}

// tell tells the directory of a loss.
func (i *inquiry) tell(l *loss) error {
	if i.o.Directory == nil {
		return nil
	}
	i.o.Seams.At("quarantine", "")
	return i.repeat("quarantine", func(ctx context.Context) error {
		if i.o.Seams.Steady().Sub(i.met) > lateAfter {
			return i.o.Directory.NoteLate(ctx, i.o.Shard, l.where(i.o.Owner))
		}
		return i.o.Directory.Quarantine(ctx, i.o.Shard, l.where(i.o.Owner))
	})
}

// rescue writes the records that the log lacks into a file, and returns its path; "" if it lacks none that are kept.
func (i *inquiry) rescue() (path string, err error) {
	before, records := i.kept.all()
	if before, records, err = i.lacking(before, records); err != nil {
		i.o.Logger.Warn("which of the records the log lacks is not known: the file gets all that are kept", "shard", i.o.Shard, "error", err)
	}
	if len(records) == 0 {
		return "", nil
	}
	r := Rescue{Shard: i.o.Shard, Cluster: i.o.Cluster, Term: i.term, Before: before, Records: records}
	return writeRescue(i.dir, &i.o.Seams, r)
}

// lacking are those of the kept records that the log lacks, and the chain before them. With an error they are all.
func (i *inquiry) lacking(before uint64, records []Record) (uint64, []Record, error) {
	first := Position(math.MaxUint64) // of the log
	has := 0                          // records that the log has
	for {
		at := has
		err := i.repeat("read", func(ctx context.Context) error {
			head, err := i.o.Log.Head(ctx, i.o.Shard)
			if err != nil {
				return err
			}
			for first = head.First; has < len(records) && records[has].At < first; {
				has++ // it is truncated, so a base has it
			}
			if has == len(records) || records[has].At > head.Last {
				return nil
			}
			return i.compare(ctx, records, &has)
		})
		if err != nil {
			return before, records, err
		}
		if has == at || has == len(records) {
			break
		}
	}
	if has > 0 {
		before = records[has-1].Chain
	}
	return before, records[has:], nil
}

// compare raises has for each record that the log has, up to the first that it lacks.
func (i *inquiry) compare(ctx context.Context, records []Record, has *int) error {
	err := i.o.Log.Read(ctx, i.o.Shard, records[*has].At, func(r Record) error {
		if *has == len(records) || r.At != records[*has].At || r.Chain != records[*has].Chain {
			return errEnough
		}
		*has++
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// writeRescue writes a rescue file, and returns its path. It has its name once all of it is durable.
func writeRescue(dir pebblestore.Dir, seams *seam.Seams, r Rescue) (path string, err error) {
	name := r.name()
	if err := dir.Make(); err != nil {
		return "", fmt.Errorf("make %s: %w", dir.Path, err)
	}
	f, err := dir.Create(name + ".new")
	if err != nil {
		return "", err
	}
	if err = r.write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("write %s: %w", dir.Join(name+".new"), err)
	}
	seams.At("rescue", "")
	if err := dir.Rename(name+".new", name); err != nil {
		return "", err
	}
	return dir.Join(name), dir.Sync()
}
