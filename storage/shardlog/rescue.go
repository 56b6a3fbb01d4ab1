package shardlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/holdfast-dev/holdfast/internal/row"
)

// rescueHead begins a rescue file. Its number is that of the layout.
const rescueHead = "holdfast rescue 1\n"

// ErrNotRescue: a file is no rescue file, or is damaged.
var ErrNotRescue = errors.New("shardlog: no rescue file, or a damaged one")

// Rescue is the records that a log has acknowledged and lost, as their owner has kept them, and the content of a rescue file. If the
// log ends at Before, Directory.Recover puts them back.
type Rescue struct {
	Shard   int
	Cluster string   // Options.Cluster of the owner; may be empty
	Term    uint64   // of the owner
	Before  uint64   // the chain of the record before the first of them
	Records []Record // in order; each follows from the one before
}

// name is the name of the file: that of its content, so that the same records are in one file.
func (r Rescue) name() string {
	first, last := r.Records[0], r.Records[len(r.Records)-1]
	return fmt.Sprintf("shard-%d-records-%d-%d-%016x.rescue", r.Shard, first.At, last.At, last.Chain)
}

// write writes the file. It gives w copies of the payloads, because some file systems of tests change the bytes that they are given.
func (r Rescue) write(w io.Writer) error {
	sum := xxhash.New()
	write := func(part row.Writer) error {
		_, _ = sum.Write(part) // never fails
		_, err := w.Write(part)
		return err
	}
	head := row.Writer(rescueHead).Uint(uint64(r.Shard)).Text(r.Cluster).Uint(r.Term).Uint(r.Before)
	if err := write(head.Uint(uint64(r.Records[0].At)).Uint(uint64(len(r.Records)))); err != nil {
		return err
	}
	for _, record := range r.Records {
		if err := write(row.Writer(nil).Uint(record.Term).Bytes(record.Payload)); err != nil {
			return err
		}
	}
	if err := write(binary.BigEndian.AppendUint64(nil, r.Records[len(r.Records)-1].Chain)); err != nil {
		return err
	}
	return write(binary.BigEndian.AppendUint64(nil, sum.Sum64()))
}

// ReadRescue reads a rescue file to its end, which takes about its length in memory, and checks its sum and the chain of its records. It returns
// ErrNotRescue for a file that is none or is damaged, and an error of the reader as it is.
func ReadRescue(from io.Reader) (Rescue, error) {
	b, err := io.ReadAll(from)
	if err != nil {
		return Rescue{}, err
	}
	body := len(b) - 16 // before the chain and the sum
	if body < len(rescueHead) || !strings.HasPrefix(string(b[:len(rescueHead)]), rescueHead) {
		return Rescue{}, fmt.Errorf("%w: it does not begin with %q", ErrNotRescue, rescueHead)
	}
	if binary.BigEndian.Uint64(b[body+8:]) != xxhash.Sum64(b[:body+8]) {
		return Rescue{}, fmt.Errorf("%w: the sum does not fit the content", ErrNotRescue)
	}
	r, err := parseRescue(row.Read(b[len(rescueHead):body]))
	if err != nil {
		return Rescue{}, err
	}
	if n := len(r.Records); n == 0 || r.Records[n-1].Chain != binary.BigEndian.Uint64(b[body:]) {
		return Rescue{}, fmt.Errorf("%w: the last record has another chain than the end says", ErrNotRescue)
	}
	return r, nil
}

// parseRescue reads what is between the head and the chain at the end.
func parseRescue(rest row.Reader) (Rescue, error) {
	r := Rescue{Shard: int(rest.Uint()), Cluster: rest.Text(), Term: rest.Uint(), Before: rest.Uint()}
	first := Position(rest.Uint())
	if first == 0 {
		rest.Fail()
	}
	before := Record{At: first - 1, Chain: r.Before}
	for n := rest.Uint(); n > 0 && rest.OK(); n-- {
		record := Record{At: before.At + 1, Term: rest.Uint(), Payload: rest.Bytes()}
		record.Chain = Next(before.Chain, record.Payload)
		if record.Term < before.Term || record.Term > r.Term {
			rest.Fail()
		}
		rest.Required()
		r.Records = append(r.Records, record)
		before = record
	}
	if rest.End(); !rest.OK() {
		return Rescue{}, fmt.Errorf("%w: record %d", ErrNotRescue, before.At)
	}
	return r, nil
}
