package shardlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// ProofFile is the name of the file beside a view with the newest record of which a table of the view may have a part. The
// position row cannot say so, because it is in a table too, and may be older than other rows of that table. The file is written
// before each table, so it costs a commit nothing.
const ProofFile = "RECEIPT"

// proofBytes is the length of the file: position, chain, and the XXH64 of both.
const proofBytes = 24

// proof is that file.
type proof struct {
	dir pebblestore.Dir

	mu  sync.Mutex // held while the file is written
	has place
}

// openProof reads the file in the directory of a view. A file that is absent tells of no record.
func openProof(dir pebblestore.Dir) (*proof, error) {
	p := &proof{dir: dir}
	text, err := dir.Read(ProofFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil
	case err != nil:
		return nil, fmt.Errorf("shardlog: read %s: %w", dir.Join(ProofFile), err)
	}
	b := []byte(text)
	if len(b) != proofBytes || binary.BigEndian.Uint64(b[16:]) != xxhash.Sum64(b[:16]) {
		return nil, fmt.Errorf("shardlog: %w: %s: remove the directory of this view, and open it again", engine.ErrCorrupt, dir.Join(ProofFile))
	}
	p.has = place{Position(binary.BigEndian.Uint64(b)), binary.BigEndian.Uint64(b[8:])}
	return p, nil
}

// write makes the file tell of a record, durably. It may come after a later one.
func (p *proof) write(newest place) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if newest.at <= p.has.at {
		return nil
	}
	err := p.dir.Write(ProofFile+".new", string(newest.proof()))
	if err == nil {
		err = p.dir.Rename(ProofFile+".new", ProofFile)
	}
	if err == nil {
		err = p.dir.Sync()
	}
	if err != nil {
		return fmt.Errorf("shardlog: write %s: %w", p.dir.Join(ProofFile), err)
	}
	p.has = newest
	return nil
}

// proof is the content of the file.
func (p place) proof() []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(p.at))
	b = binary.BigEndian.AppendUint64(b, p.chain)
	return binary.BigEndian.AppendUint64(b, xxhash.Sum64(b))
}
