package raw

import (
	"sync"

	"github.com/puzpuzpuz/xsync/v3"
)

// Mailboxes are in-memory objects. Calls wait in a queue with a mutex, and the first
// caller serves it: the least that a turn without storage can be.
type Mailboxes struct {
	boxes []box
	names *xsync.MapOf[string, *box] // nil: they are found by number only
	pool  sync.Pool                  // of *message
}

type message struct {
	next  *message
	reply chan uint64
}

type box struct {
	mu         sync.Mutex
	running    bool
	head, tail *message
	n          uint64
}

// NewMailboxes makes some objects.
func NewMailboxes(objects int) *Mailboxes {
	return &Mailboxes{
		boxes: make([]box, objects),
		pool:  sync.Pool{New: func() any { return &message{reply: make(chan uint64, 1)} }},
	}
}

// NewNamedMailboxes makes an object for each name, each with memory of its own.
func NewNamedMailboxes(names []string) *Mailboxes {
	m := NewMailboxes(0)
	m.names = xsync.NewMapOf[string, *box](xsync.WithPresize(len(names)))
	for _, name := range names {
		m.names.Store(name, &box{})
	}
	return m
}

// Read calls object i modulo their number and returns the value that its turn read.
func (m *Mailboxes) Read(i int) uint64 { return m.call(&m.boxes[i%len(m.boxes)]) }

// ReadNamed is Read of an object that is found by its name in a concurrent map.
func (m *Mailboxes) ReadNamed(name string) uint64 {
	b, _ := m.names.Load(name)
	return m.call(b)
}

func (m *Mailboxes) call(b *box) uint64 {
	msg := m.pool.Get().(*message)
	msg.next = nil
	if b.push(msg) {
		b.drain()
	}
	v := <-msg.reply
	m.pool.Put(msg)
	return v
}

func (b *box) push(m *message) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tail == nil {
		b.head = m
	} else {
		b.tail.next = m
	}
	b.tail = m
	first = !b.running
	b.running = true
	return first
}

func (b *box) drain() {
	for {
		b.mu.Lock()
		m := b.head
		b.head, b.tail = nil, nil
		b.running = m != nil
		b.mu.Unlock()
		if m == nil {
			return
		}
		for m != nil {
			next := m.next // read before the reply hands m back
			m.reply <- b.n
			m = next
		}
	}
}
