package measure

import (
	"maps"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Costs are the costs of one operation, by name: "allocs", "bytes", "commits", "syncs",
// "log bytes", ProcessorNanos.
type Costs map[string]float64

// ProcessorNanos is the cost in processor time, in nanoseconds: that of the whole
// process, so the loop, the garbage collector and the flushes of the store are in it.
const ProcessorNanos = "processor ns"

// A Meter reads a running count, such as the syncs of a file system.
type Meter func() uint64

// Meters are counts by the name of the cost that they make up.
type Meters map[string]Meter

// Metered is the state of some meters at one moment.
type Metered struct {
	meters Meters
	at     map[string]uint64
}

// Start reads the meters, and the allocations and the processor time of the process.
func Start(meters Meters) Metered {
	m := Metered{meters: meters}
	m.at = m.read()
	return m
}

func (m Metered) read() map[string]uint64 {
	at := make(map[string]uint64, len(m.meters)+3)
	at[ProcessorNanos] = uint64(Processor())
	for name, f := range m.meters {
		at[name] = f()
	}
	at["allocs"], at["bytes"] = allocated()
	return at
}

// PerOp is the cost of each of ops operations since Start.
func (m Metered) PerOp(ops int64) Costs {
	if ops <= 0 {
		return nil
	}
	costs := make(Costs, len(m.at))
	for name, now := range m.read() {
		costs[name] = float64(now-m.at[name]) / float64(ops)
	}
	return costs
}

// Least is the smaller of each cost of two measurements; the first may be nil.
func Least(a, b Costs) Costs {
	least := maps.Clone(b)
	for name, cost := range a {
		least[name] = min(cost, least[name])
	}
	return least
}

// allocated is how many objects and bytes the process has ever allocated.
func allocated() (objects, sizeBytes uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64()
}

// HeapBytes collects garbage and returns the bytes left on the heap and on stacks.
func HeapBytes() float64 {
	runtime.GC()
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}
