package raw

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Pass is what a message costs at least, from object i through as many others as hops says:
// a batch for each turn. The first writes the number of the object and a row of the size of
// a message; each other deletes the row of the one before, and all but the last write one
// of their own. Only the last batch is waited for.
func (t *Turns) Pass(i, hops, size int) error {
	row := func(at int) []byte { return fmt.Appendf(nil, "message-%08d-%08d", (i+at)%len(t.objects), i) }
	for at := range hops + 1 {
		o := &t.objects[(i+at)%len(t.objects)]
		b := t.db.NewBatch()
		o.mu.Lock()
		o.n++
		var v [8]byte
		binary.BigEndian.PutUint64(v[:], o.n)
		err := b.Set(o.key, v[:], nil)
		if err == nil && at > 0 {
			err = b.Delete(row(at), nil)
		}
		if err == nil && at < hops {
			err = b.Set(row(at+1), make([]byte, size), nil)
		}
		if err == nil && at == hops {
			return t.finish(o, b, nil)
		}
		if err == nil {
			err = t.db.Apply(b, pebble.NoSync)
		}
		o.mu.Unlock()
		if err == nil {
			err = b.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
