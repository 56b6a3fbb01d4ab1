package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/holdfast-dev/holdfast/storage"
)

// Proves V15: a page is told which objects have changed, each after its commit and the last too, and nothing of their events.
func TestLiveTellsTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, nil, bells)
		s := f.follow("viewer", "/ui/live")
		for _, name := range []string{"a", "b/ \n", "c"} { // the first at once, the others in frames that are a second apart
			if _, err := ring.Call(t.Context(), f.host, name, "ding secret"); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for want := []string{"bell/a", "bell/b%2F+%0A", "bell/c"}; !slices.Equal(got, want); slices.Sort(got) {
			fr := s.want("stale")
			var topics []string
			if err := json.Unmarshal([]byte(fr.data), &topics); err != nil || len(topics) == 0 || fr.id != "" {
				t.Fatalf("%+v: %v", fr, err)
			}
			for _, topic := range topics {
				if slices.Contains(got, topic) || !slices.Contains(want, topic) {
					t.Fatalf("%s after %s", topic, got)
				}
				got = append(got, topic)
			}
		}
		f.srv.EndStreams()
		s.want("bye")
	})
}

// When many objects change, their classes stand for them.
func TestLiveIsBounded(t *testing.T) {
	l := &live{topics: map[string]bool{}}
	for i := range maxTopics {
		l.mark(storage.ID{Class: "a", Name: fmt.Sprint(i)})
	}
	if len(l.topics) != maxTopics || !l.topics["a/0"] {
		t.Errorf("%d topics: %v", maxTopics, l.topics)
	}
	for i := range 10 * maxTopics {
		l.mark(storage.ID{Class: []string{"a", "b"}[i%2], Name: fmt.Sprint(maxTopics + i)})
		if len(l.topics) > maxTopics+2 {
			t.Fatalf("%d topics", len(l.topics))
		}
	}
	if len(l.topics) == 0 || !l.topics["a"] {
		t.Errorf("many: %v", l.topics)
	}
}
