package inbox

import (
	"slices"

	"pgregory.net/rapid"
)

// settle lets all that is under way end, and expects that nothing is left.
func (m *model) settle(t *rapid.T) {
	total := 0
	for _, n := range m.sent {
		total += n
	}
	for range 1000 * (total + 10) {
		if m.handled == total && len(m.commits) == 0 {
			break
		}
		m.step()
	}
	for _, r := range m.receivers { // a reading may find the end of a backlog
		for r.reading != nil || r.readers+r.delayed+r.pauses > 0 || len(r.mailbox)+len(r.lent)+len(r.finished) > 0 {
			m.step()
		}
	}
	if m.handled != total {
		t.Fatalf("%d messages of %d were handled", m.handled, total)
	}
	if under, waiting, _ := m.boxes.Sum(); under+waiting != 0 || m.boxes.bytes.Load() != 0 {
		t.Fatalf("%d under way, %d waiting, %d bytes are left", under, waiting, m.boxes.bytes.Load())
	}
	for _, r := range m.receivers {
		if m.boxes.Known(r.Receiver) {
			t.Fatalf("the box of %s is left", r.ID)
		}
	}
}

// step takes each step that can be taken, without a choice.
func (m *model) step() {
	for _, c := range slices.Clone(m.commits) {
		for _, seq := range c.seqs {
			m.rows[seq].visible = true
		}
		for _, seq := range c.seqs {
			if d := m.delivery(seq); m.boxes.Arrive(d.Message) {
				d.row.to.mailbox = append(d.row.to.mailbox, d)
			}
		}
		m.commits = m.commits[1:]
	}
	for seq, r := range m.rows {
		if r.later {
			delete(m.rows, seq)
			m.handled++
		}
	}
	m.feed(m.t)
	for _, r := range m.receivers {
		for _, d := range r.finished {
			m.land(d, false)
		}
		handlers := r.lent
		if r.running != nil {
			handlers = append(handlers, r.running)
		}
		r.finished, r.lent, r.running = nil, nil, nil
		for _, d := range handlers {
			m.settled(d)
		}
		for _, d := range r.mailbox {
			if d.Withdrawn() {
				m.land(d, false)
			} else {
				m.settled(d)
			}
		}
		r.mailbox = nil
		for r.pauses+r.delayed > 0 {
			m.timers(m.t)
		}
		if r.readers > 0 {
			m.beginReading(m.t)
		}
		for r.reading != nil {
			m.readOne(m.t)
		}
	}
}

// settled ends a handler well.
func (m *model) settled(d *delivered) {
	d.row.underHand = false
	delete(m.rows, d.Seq)
	m.handled++
	m.land(d, true)
}
