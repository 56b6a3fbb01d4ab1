package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/object"
)

// check counts all again in a plain loop, and returns the differences to the output of a
// run and to each row of its shards.
func (p *program) check(ctx context.Context, from object.Caller, id string, limit int, t totals) ([]string, error) {
	want, terms, err := p.plain(ctx, limit)
	if err != nil {
		return nil, err
	}
	got, err := p.stored(ctx, from, id, shardCount)
	if err != nil {
		return nil, err
	}
	return differences(t, want, got, terms), nil
}

// plain counts the tree in a loop, without a workflow.
func (p *program) plain(ctx context.Context, limit int) (totals, map[string]int, error) {
	packages, err := findPackages(ctx, p.tree, limit, packagesMax)
	if err != nil {
		return totals{}, nil, err
	}
	all := newReading()
	for _, dir := range packages {
		r, err := readPackage(ctx, p.tree, dir)
		if err != nil {
			return totals{}, nil, err
		}
		all.add(r)
	}
	var counts []count
	for term, n := range all.Terms {
		counts = append(counts, count{term, n})
	}
	return totals{len(packages), all.Sums, len(all.Terms), top(counts)}, all.Terms, nil
}

// stored is how often each term occurs by the rows of the shards. A term in two shards is an
// error.
func (p *program) stored(ctx context.Context, from object.Caller, id string, shards int) (map[string]int, error) {
	terms := make(map[string]int)
	for number := range shards {
		counts, err := p.list.Call(ctx, from, shardName(id, number), struct{}{})
		if err != nil {
			return nil, err
		}
		for _, c := range counts {
			if _, twice := terms[c.Term]; twice {
				return nil, fmt.Errorf("the term %q is in two shards", c.Term)
			}
			terms[c.Term] = c.Count
		}
	}
	return terms, nil
}

// differences says where the totals of a run and the rows of its shards differ from those of
// the plain loop.
func differences(got, want totals, stored, counted map[string]int) (all []string) {
	differ := func(name string, got, want int) {
		if got != want {
			all = append(all, fmt.Sprintf("%s: %d, and in the plain loop %d", name, got, want))
		}
	}
	differ("packages", got.Packages, want.Packages)
	differ("documents", got.Documents, want.Documents)
	differ("broken documents", got.Broken, want.Broken)
	differ("words", got.Words, want.Words)
	differ("terms", got.Terms, want.Terms)
	if !slices.Equal(got.Top, want.Top) {
		all = append(all, fmt.Sprintf("most frequent terms: %v, and in the plain loop %v", got.Top, want.Top))
	}
	union := maps.Clone(counted)
	maps.Copy(union, stored)
	for _, term := range slices.Sorted(maps.Keys(union)) {
		differ("term "+term, stored[term], counted[term])
	}
	return all
}
