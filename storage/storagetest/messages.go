package storagetest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/storage"
)

// In the words of rows a message is "message", its receiver, its queue and the commit that
// sent it, and its state is the same with "state". The number of a message is left out,
// because a commit that is made again draws another.

// queueRows begins the keys of a queue's messages, or of their states.
func queueRows(kind, name string, queue byte) string {
	return fmt.Sprintf("%s %s %d ", kind, name, queue)
}

// messages puts into d the changes of messages that commit n makes: it takes or tries the
// first message of one object, and sends one to another.
func (w *workload) messages(d *draft, n int, here, there string) {
	queue := byte(n/5) % storage.Queues
	switch n % 3 {
	case 0:
		d.take(here, queue)
	case 1:
		d.try(here, queue, int64(n%4), w.value(n, 20)) // at the time 0 for some, which is no time
	}
	d.send(there, byte(n)%storage.Queues, n, w.value(n, 200))
}

// send adds a message.
func (d *draft) send(name string, queue byte, n int, value string) {
	o := d.objects(storage.ID{Class: class, Name: name}) // which need not exist
	d.batch.AddMessage(o.Shard, o.ID, queue, []byte(value))
	d.rows[fmt.Sprintf("%s%06d", queueRows("message", name, queue), n)] = value
}

// firstMessage is the key of a queue's first message, without its kind, and the message itself;
// ok is false if there is none.
func (d *draft) firstMessage(name string, queue byte) (key string, m storage.StoredMessage, ok bool) {
	begin := queueRows("message", name, queue)
	for _, k := range slices.Sorted(maps.Keys(d.rows)) {
		if strings.HasPrefix(k, begin) {
			return strings.TrimPrefix(k, "message"), d.first(storage.ID{Class: class, Name: name}, queue), true
		}
	}
	return "", storage.StoredMessage{}, false
}

// try stores a state of the first message of a queue.
func (d *draft) try(name string, queue byte, due int64, state string) {
	if key, m, ok := d.firstMessage(name, queue); ok {
		d.batch.SetMessageState(m.MessageID, m.Due, due, []byte(state))
		d.rows["state"+key] = stateText(due, state)
	}
}

func stateText(due int64, state string) string { return strconv.FormatInt(due, 10) + " " + state }

// take removes the first message of a queue.
func (d *draft) take(name string, queue byte) {
	if key, m, ok := d.firstMessage(name, queue); ok {
		d.batch.DeleteMessage(m.MessageID, m.Stated, m.Due)
		delete(d.rows, "message"+key)
		delete(d.rows, "state"+key)
	}
}

// firstOf is the first message of a queue in the store.
func firstOf(st *storage.Store, id storage.ID, queue byte) (first storage.StoredMessage, err error) {
	err = st.Messages(id, queue, 0, st.MessagesBelow(), func(m storage.StoredMessage) bool {
		first = m
		return false
	})
	return first, err
}

// messages reads the messages of an object, dead or alive.
func (r reader) messages(id storage.ID) error {
	n := 0
	for queue := range byte(storage.Queues) {
		err := r.store.Messages(id, queue, 0, r.store.MessagesBelow(), func(m storage.StoredMessage) bool {
			n++
			commit, _, _ := strings.Cut(string(m.Value), ":") // as value writes it
			key := fmt.Sprintf(" %s %d %06s", id.Name, queue, commit)
			r.out["message"+key] = string(m.Value)
			if m.Stated {
				r.out["state"+key] = stateText(m.Due, string(m.State))
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	has, err := r.store.HasMessages(id, r.store.MessagesBelow())
	if err == nil && has != (n > 0) {
		err = fmt.Errorf("%w: %s has %d messages, and HasMessages says %v", errWrong, id, n, has)
	}
	return err
}

// later compares the entries of a shard's index by time with the messages.
func (r reader) later(shard int) error {
	entries, err := r.store.ScanLater(shard, 0, 0, 1000)
	if err != nil {
		return err
	}
	for _, e := range entries {
		m, ok, err := r.store.Message(e.MessageID)
		if err != nil {
			return err
		}
		if !ok || m.Due != e.Due {
			return fmt.Errorf("%w: message %d of %s: the index says %d, the state %d", errWrong, e.Seq, e.To, e.Due, m.Due)
		}
	}
	return nil
}
