// Package labels counts the objects of a host by class and label.
package labels

import (
	"sync"

	"github.com/holdfast-dev/holdfast/storage"
)

// Counts holds how many objects of each class have each label. The zero value is empty.
// Its methods may be called concurrently. It takes about 100 bytes for each class and label.
type Counts struct {
	mu    sync.Mutex
	n     map[key]int
	whole bool // Read has ended
}

type key struct{ class, label string }

// Move notes that a commit has changed the label of an object. Either label may be zero, for
// none.
func (c *Counts) Move(class string, from, to storage.Label) {
	if from == to {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(key{class, from.String()}, -1)
	c.add(key{class, to.String()}, 1)
}

// add changes one count. Before Read has ended it may be less than zero. The caller holds
// the mutex.
func (c *Counts) add(k key, by int) {
	if k.label == "" {
		return
	}
	if c.n == nil {
		c.n = make(map[key]int)
	}
	if c.n[k] += by; c.n[k] == 0 {
		delete(c.n, k)
	}
}

// Read adds the objects of a snapshot, shard by shard, and closes it. Moves may come
// meanwhile, because the snapshot was made before the first of them. Read ends early, and
// the counts stay incomplete, once stop reports true.
func (c *Counts) Read(snapshot *storage.LabelCount, stop func() bool) error {
	for more := true; more; {
		if stop() {
			return snapshot.Close()
		}
		found := make(map[key]int)
		var err error
		more, err = snapshot.Next(func(class, label string) bool {
			found[key{class, label}]++
			return !stop()
		})
		if err != nil {
			_ = snapshot.Close() // err says why nothing more can be read
			return err
		}
		c.mu.Lock()
		for k, n := range found {
			c.add(k, n)
		}
		c.whole = !more && !stop()
		c.mu.Unlock()
	}
	return snapshot.Close()
}

// Class returns the counts of a class by label, and whether they are complete.
func (c *Counts) Class(class string) (counts map[string]int, complete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts = make(map[string]int)
	for k, n := range c.n {
		if k.class == class {
			counts[k.label] = n
		}
	}
	return counts, c.whole
}
