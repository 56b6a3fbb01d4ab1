package object_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// sharing is a probe that wants to know of shared memory.
type sharing struct {
	mu    sync.Mutex
	told  []string
	blind bool
}

func (*sharing) At(seam.Point) {}

func (s *sharing) WatchesSharing() bool { return !s.blind }

func (s *sharing) Shared(object, problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, object+": "+problem)
}

// loop leads back to itself.
type loop struct{ Next, Other *loop }

// shelf is an object that keeps memory in all kinds of places.
type shelf struct {
	Loop    loop
	Own     []byte
	Slices  [][]byte
	Structs []struct{ In []byte }
	Arrays  [][1][]byte
	Maps    []map[string][]byte
	Map     map[string]map[string]int
	Any     []any
	Pointer *struct{ In *[4]int }
	Numbers [4]int
}

// Proves O3: a probe learns of each place in which an object keeps memory of an argument
// or of an answer, and of no place with a copy.
func TestProbeIsToldOfSharedMemory(t *testing.T) {
	type box struct {
		Bytes []byte
		Map   map[string]int
		Array *[4]int
	}
	keep := map[string]func(s *shelf, b box){
		".Own":           func(s *shelf, b box) { s.Own = b.Bytes[:1:1] },
		".Slices[…]":     func(s *shelf, b box) { s.Slices = [][]byte{nil, b.Bytes} },
		".Structs[…].In": func(s *shelf, b box) { s.Structs = []struct{ In []byte }{{}, {b.Bytes[3:]}} },
		".Arrays[…][…]":  func(s *shelf, b box) { s.Arrays = [][1][]byte{{b.Bytes}} },
		".Maps[…][…]":    func(s *shelf, b box) { s.Maps = []map[string][]byte{nil, {"k": b.Bytes}} },
		".Map[…]":        func(s *shelf, b box) { s.Map = map[string]map[string]int{"k": b.Map} },
		".Any[…]":        func(s *shelf, b box) { s.Any = []any{nil, 7, b.Array} },
		".Pointer.In":    func(s *shelf, b box) { s.Pointer = &struct{ In *[4]int }{b.Array} },
		"": func(s *shelf, b box) {
			s.Own, s.Numbers = append([]byte(nil), b.Bytes...), *b.Array
			s.Maps = []map[string][]byte{{"k": s.Own}}
		},
	}
	class := object.Define("shelf", func(context.Context, *object.State) (*shelf, error) {
		s := &shelf{}
		s.Loop = loop{&s.Loop, &loop{&s.Loop, &s.Loop}}
		return s, nil
	})
	put := object.Handle(class, "put", func(s *shelf, _ context.Context, arg struct {
		How string
		Box box
	}) (int, error) {
		keep[arg.How](s, arg.Box)
		return 0, nil
	})
	give := object.Handle(class, "give", func(s *shelf, _ context.Context, how string) (box, error) {
		b := box{make([]byte, 8), map[string]int{"k": 1}, new([4]int)}
		keep[how](s, b)
		return b, nil
	})
	for _, blind := range []bool{false, true} {
		p := &sharing{blind: blind}
		f := newFixture(t)
		f.options.Seams.Probe = p
		f.open(class)
		for how := range keep {
			name := "o" + strings.NewReplacer(".", "_", "[…]", "0").Replace(how)
			for half, call := range map[string]func() error{
				"argument": func() error {
					_, err := put.Call(context.Background(), f.host, "put"+name, struct {
						How string
						Box box
					}{how, box{make([]byte, 8), map[string]int{"k": 1}, new([4]int)}})
					return err
				},
				"answer": func() error { _, err := give.Call(context.Background(), f.host, "give"+name, how); return err },
			} {
				p.told = nil
				if err := call(); err != nil {
					t.Fatal(err)
				}
				method := map[string]string{"argument": "put", "answer": "give"}[half]
				want := ""
				if how != "" && !blind {
					want = "shelf/" + method + name + ": the handler " + method + " keeps memory of its " + half + " in " +
						strings.TrimPrefix(how, ".") + ": copy it, because the caller has it too"
				}
				if got := strings.Join(p.told, "\n"); got != want {
					t.Errorf("O3: the probe is told %q, want %q", got, want)
				}
			}
		}
		f.close()
	}
}
