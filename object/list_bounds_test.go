package object_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves S4: a list keeps each of its bounds, in any combination and in both directions.
func TestListBounds(t *testing.T) {
	f := newFixture(t).open()
	defer f.close()
	all := []string{"a", "a\x00", "a1", "a2", "a3", "b", "b1", "\xff", "\xff\x01", "\xff\x02", "\xff\xff"}
	f.must("x", func(th *thing, ctx context.Context) (any, error) {
		for _, key := range all {
			if err := th.st.Storage().PutBytes(ctx, key, []byte("of "+key)); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	bounds := []string{"", "a", "a1", "a2", "a3", "b", "b9", "\xff", "\xff\x01", "\xff\xff", "\xff\xff\xff"}
	f.must("x", func(th *thing, ctx context.Context) (any, error) {
		for _, start := range bounds {
			for _, after := range bounds {
				for _, end := range bounds {
					for _, prefix := range []string{"", "a", "a1", "b", "\xff", "\xff\xff", "c"} {
						for _, o := range []object.ListOptions{{}, {Reverse: true}, {Limit: 1}, {Limit: 2, Reverse: true}} {
							o.Start, o.StartAfter, o.End, o.Prefix = start, after, end, prefix
							want := between(all, o)
							var got []string
							for item, err := range th.st.Storage().List(ctx, o) {
								if err != nil || string(item.Value) != "of "+item.Key {
									return nil, fmt.Errorf("%+v: %q, %w", o, item, err)
								}
								got = append(got, item.Key)
							}
							if !slices.Equal(got, want) {
								return nil, fmt.Errorf("S4: %+v lists %q, want %q", o, got, want)
							}
						}
					}
				}
			}
		}
		return nil, nil
	})
}

// between is the keys that o asks for.
func between(all []string, o object.ListOptions) (keys []string) {
	for _, key := range all {
		if key >= o.Start && (o.StartAfter == "" || key > o.StartAfter) && (o.End == "" || key < o.End) && strings.HasPrefix(key, o.Prefix) {
			keys = append(keys, key)
		}
	}
	if o.Reverse {
		slices.Reverse(keys)
	}
	if o.Limit > 0 && o.Limit < len(keys) {
		keys = keys[:o.Limit]
	}
	return keys
}
