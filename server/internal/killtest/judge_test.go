package main

import (
	"bufio"
	"slices"
	"strings"
	"testing"
)

// fair returns a record of two accounts, and the store that it belongs to.
func fair() (*record, map[string]stored) {
	r, store := newRecord(1), map[string]stored{}
	for _, name := range []string{accountName(0), accountName(1)} {
		s := stored{times: map[string]int{}}
		stays, late := r.follows(name, "one follower"), r.follows(name, "another follower")
		for total := 1; total <= 3; total++ {
			o := &operation{account: name, key: name + " operation " + string('0'+rune(total))}
			r.all = append(r.all, o)
			r.told(o, answer{total, 1})
			r.told(o, answer{total, 1})
			e := event{uint64(total), change{o.key, total}}
			r.saw(stays, e)
			r.saw(late, e)
			s.total, s.times[o.key], s.events = total, 1, append(s.events, e)
		}
		store[name] = s
	}
	return r, store
}

// The judge finds each difference between the answers, the streams and the store.
func TestJudgeFindsDifferences(t *testing.T) {
	if r, store := fair(); len(r.judge(store)) > 0 {
		t.Fatalf("without a difference: %q", r.judge(store))
	}
	const first = "account-0 operation 1"
	for _, c := range []struct {
		name, want string
		spoil      func(r *record, s *stored)
	}{
		{"a lost call", "account-0 operation 3 was answered, and is lost", func(r *record, s *stored) {
			delete(s.times, "account-0 operation 3")
			s.total, s.events = 2, s.events[:2]
		}},
		{"a key that took effect twice", first + " took effect 2 times", func(_ *record, s *stored) { s.times[first] = 2 }},
		{"a key that took effect twice before its first answer", first + " was answered after it took effect 2 times", func(r *record, _ *stored) { r.all[0].first.Times = 2 }},
		{"two answers of one key", first + " was answered {Total:1 Times:1}, and then {Total:2 Times:1}", func(r *record, _ *stored) { r.told(r.all[0], answer{2, 1}) }},
		{"no answer", first + " has no answer", func(r *record, _ *stored) { r.all[0].first = nil }},
		{"a call that was never sent", "account-0 has 4 operations, of 3 that were sent", func(_ *record, s *stored) { s.times["another"] = 1 }},
		{"a total that is not its operations", "account-0 has a total of 4 and 3 events after 3 effects", func(_ *record, s *stored) { s.total = 4 }},
		{"an event that is not stored", "account-0 has a total of 3 and 2 events after 3 effects", func(_ *record, s *stored) { s.events = s.events[:2] }},
		{"a stored event of no operation", "event 1 of account-0 tells of another, which the store does not have", func(_ *record, s *stored) { s.events[0].Operation = "another" }},
		{"stored events in another order", "event 2 of account-0 tells the total 3, want 2", func(_ *record, s *stored) { s.events[1].Total = 3 }},
		{"a gap", "one follower of account-0: event 2 did not come before event 3", func(r *record, _ *stored) {
			r.feeds[0].events = slices.Delete(r.feeds[0].events, 1, 2)
		}},
		{"a gap at the begin", "one follower of account-0: event 1 did not come before event 2", func(r *record, _ *stored) {
			r.feeds[0].events = r.feeds[0].events[1:]
		}},
		{"a gap at the end", "another follower of account-0: 2 events came, and the store has 3", func(r *record, _ *stored) {
			r.feeds[1].events = r.feeds[1].events[:2]
		}},
		{"a double", "one follower of account-0: event 2 came after event 2", func(r *record, _ *stored) {
			r.feeds[0].events = slices.Insert(r.feeds[0].events, 2, r.feeds[0].events[1])
		}},
		{"a double at the end", "one follower of account-0: event 3 came after event 3", func(r *record, _ *stored) {
			r.feeds[0].events = append(r.feeds[0].events, r.feeds[0].events[2])
		}},
		{"an event that a crash took back", "one follower of account-0: event 4 is not in the store", func(r *record, _ *stored) {
			r.saw(r.feeds[0], event{4, change{"another", 4}})
		}},
		{"an event that a crash changed", "one follower of account-0: event 2 came as {Operation:another Total:2}", func(r *record, _ *stored) {
			r.feeds[0].events[1].Operation = "another"
		}},
		{"a client that saw something strange", "a stream ended", func(r *record, _ *stored) { r.strange("a stream ended") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, store := fair()
			s := store[accountName(0)]
			c.spoil(r, &s)
			store[accountName(0)] = s
			list := r.judge(store)
			if !slices.ContainsFunc(list, func(got string) bool { return strings.HasPrefix(got, c.want) }) {
				t.Errorf("the judge says %q, want %q", list, c.want)
			}
		})
	}
}

// A campaign in which no kill met a call or a stream has shown nothing, so it fails.
func TestEmptyCampaignFails(t *testing.T) {
	err := newRecord(1).compare(t.Context(), t.TempDir(), figures{streams: 8, followers: 8})
	for _, want := range []string{"no kill left a call without an answer", "no stream was resumed"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// A frame that a kill has torn is dropped, and one with another id than its event is an error.
func TestTornFrames(t *testing.T) {
	const whole = "id: 7\nevent: event\ndata: {\"seq\":7,\"data\":{\"operation\":\"a\",\"total\":7}}\n\n"
	for cut := range len(whole) {
		if _, _, _, err := frame(bufio.NewReader(strings.NewReader(whole[:cut]))); err == nil {
			t.Errorf("%q is taken for a frame", whole[:cut])
		}
	}
	id, kind, data, err := frame(bufio.NewReader(strings.NewReader(": ping\n" + whole)))
	if err != nil || kind != "event" {
		t.Fatal(kind, err)
	}
	if e, err := parse(id, data); err != nil || e != (event{7, change{"a", 7}}) {
		t.Errorf("the event is %+v, %v", e, err)
	}
	if _, err := parse("8", data); err == nil {
		t.Error("event 7 is taken with the id 8")
	}
}
