package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/object"
)

// shard is the object of those terms of a run whose hash it has. Each term has a row with
// its count.
type shard struct {
	st  *object.State
	p   *program
	has progress
}

// progress is the row of a shard beside those of its terms.
type progress struct {
	Groups int `json:"groups"` // whose counts it has
	Terms  int `json:"terms"`
	Words  int `json:"words"`
}

const (
	progressKey = "progress"
	termPrefix  = "term/"
)

// delivery is the message to a shard with the counts of a group. A group sends one to each
// shard, also if it has no terms for it, so that a shard knows when it has all.
type delivery struct {
	Run    string         `json:"run"`
	Groups int            `json:"groups"` // of the run
	Terms  map[string]int `json:"terms"`
}

// merged is the signal of a shard that has the counts of all groups.
type merged struct {
	Terms int     `json:"terms"`
	Words int     `json:"words"`
	Top   []count `json:"top"`
}

func (p *program) newShard(ctx context.Context, st *object.State) (*shard, error) {
	s := &shard{st: st, p: p}
	_, err := st.Storage().GetInto(ctx, progressKey, &s.has)
	return s, err
}

func shardName(run string, number int) string { return run + "/" + strconv.Itoa(number) }

// shardOf is the shard of a term. It must stay the same for as long as a run lives.
func shardOf(term string, shards int) int {
	h := fnv.New32a()
	h.Write([]byte(term))
	return int(h.Sum32() % uint32(shards))
}

// split gives each shard its part of the counts.
func split(terms map[string]int, shards int) []map[string]int {
	parts := make([]map[string]int, shards)
	for i := range parts {
		parts[i] = make(map[string]int)
	}
	for term, n := range terms {
		parts[shardOf(term, shards)][term] = n
	}
	return parts
}

// add adds the counts of a group. It does not ask whether it has added them before, because
// a message takes effect exactly once.
func (s *shard) add(ctx context.Context, d delivery) (struct{}, error) {
	has := s.has
	has.Groups++
	for _, term := range slices.Sorted(maps.Keys(d.Terms)) {
		n := 0
		found, err := s.st.Storage().GetInto(ctx, termPrefix+term, &n)
		if err != nil {
			return struct{}{}, err
		}
		if !found {
			has.Terms++
		}
		has.Words += d.Terms[term]
		if err := s.st.Storage().Put(ctx, termPrefix+term, n+d.Terms[term]); err != nil {
			return struct{}{}, err
		}
	}
	if err := s.st.Storage().Put(ctx, progressKey, has); err != nil {
		return struct{}{}, err
	}
	if has.Groups == d.Groups {
		if err := s.tell(ctx, d.Run, has); err != nil {
			return struct{}{}, err
		}
	}
	s.has = has // after the writes: a turn that fails leaves memory as it was
	return struct{}{}, nil
}

// tell sends the signal to the run with the turn's commit.
func (s *shard) tell(ctx context.Context, run string, has progress) error {
	counts, err := s.list(ctx, struct{}{})
	if err != nil {
		return err
	}
	m := merged{Terms: has.Terms, Words: has.Words, Top: top(counts)}
	return mergedSignal.Send(ctx, s.st.Outbox(), s.p.runs, run, m)
}

// list returns all terms of the shard, in the order of their bytes.
func (s *shard) list(ctx context.Context, _ struct{}) (counts []count, err error) {
	for item, err := range s.st.Storage().List(ctx, object.ListOptions{Prefix: termPrefix}) {
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(string(item.Value)) // as JSON has it
		if err != nil {
			return nil, fmt.Errorf("row %q: %w", item.Key, err)
		}
		counts = append(counts, count{strings.TrimPrefix(item.Key, termPrefix), n})
	}
	return counts, nil
}
