package harness

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// fuzzBytes is the length to which every input is filled with zeros. A zero stands for
// the simplest choice: no crash, no fault, first come first served. The draws of one
// run fit into it.
const fuzzBytes = 2048

// Fuzz lets the fuzzer choose instead of rapid, which Check uses: its bytes are the
// crashes, the commits that survive them, the faults and the order of tasks. An input
// that fails prints the same failure as Exhaust, with a line for Replay. In an ordinary
// test run it tries a few inputs of its own and those in testdata/fuzz; with go test
// -fuzz it looks for new ones.
func Fuzz(f *testing.F, scenario Scenario, opts ...Option) {
	f.Helper()
	tr := newTrials(f, "fuzz", opts)
	f.Cleanup(tr.record)
	for seed := range uint64(16) {
		f.Add(fuzzSeed(seed))
	}
	fuzz := rapid.MakeFuzz(func(rt *rapid.T) { tr.try(rt, scenario) })
	f.Fuzz(func(t *testing.T, input []byte) {
		fuzz(t, append(input, make([]byte, max(fuzzBytes-len(input), 0))...))
	})
}

// fuzzSeed is an input: nothing at all, or more and more that is random.
func fuzzSeed(seed uint64) []byte {
	var b []byte
	for i := range seed * 6 {
		b = binary.LittleEndian.AppendUint64(b, hash(seed, string(rune('a'+i)))*0x9e3779b97f4a7c15)
	}
	return b
}
