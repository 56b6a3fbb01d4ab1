package server

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/dashboard"
	"github.com/holdfast-dev/holdfast/storage"
)

// live is the news of a stream for pages: topics that have changed, and no more of the events, so that a browser
// gets little however many there are.
type live struct {
	topics map[string]bool
	told   time.Time // when topics were last told
}

const (
	// tellEvery is the least time between two frames.
	tellEvery = time.Second
	// maxTopics bounds the topics of a frame but for those of whole classes.
	maxTopics = 64
)

// liveStream tells a page which of its parts are stale.
func (x *exchange) liveStream() error {
	return (&stream{exchange: x, live: &live{topics: map[string]bool{}}}).run(false)
}

// mark adds the topic of an object. When there are many, the classes stand for their objects.
func (l *live) mark(id storage.ID) {
	if class := dashboard.Topic(id.Class, ""); l.topics[class] {
		return
	}
	l.topics[dashboard.Topic(id.Class, id.Name)] = true
	if len(l.topics) <= maxTopics {
		return
	}
	for topic := range maps.Clone(l.topics) {
		delete(l.topics, topic)
		class, _, _ := strings.Cut(topic, "/")
		l.topics[class] = true
	}
}

// patience is how long the stream waits for events.
func (st *stream) patience() time.Duration {
	if st.live == nil || len(st.live.topics) == 0 {
		return st.limits.checkEvery
	}
	return min(st.limits.checkEvery, max(0, time.Until(st.live.told.Add(tellEvery))))
}

// tell adds the frame of a stream for pages, if it is time.
func (st *stream) tell() error {
	if st.live == nil || len(st.live.topics) == 0 || time.Since(st.live.told) < tellEvery {
		return nil
	}
	topics := slices.Sorted(maps.Keys(st.live.topics))
	clear(st.live.topics)
	st.live.told = time.Now()
	return st.frame("stale", "", topics)
}
