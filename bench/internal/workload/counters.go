package workload

import (
	"context"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
)

// CounterClass is the class of the objects of Counters.
const CounterClass = "counter"

// counter keeps a number in memory and stored.
type counter struct {
	st *object.State
	n  uint64
}

// Alarm does nothing.
func (c *counter) Alarm(context.Context, object.AlarmInfo) error { return nil }

var (
	counters = object.Define(CounterClass, func(ctx context.Context, st *object.State) (*counter, error) {
		c := &counter{st: st}
		v, ok, err := st.Storage().Get(ctx, "n")
		if ok && len(v) == 8 {
			c.n = binary.BigEndian.Uint64(v)
		}
		return c, err
	})
	read = object.Handle(counters, "read", func(c *counter, _ context.Context, _ struct{}) (uint64, error) {
		return c.n, nil
	})
	load = object.Handle(counters, "load", func(c *counter, ctx context.Context, _ struct{}) (uint64, error) {
		v, ok, err := c.st.Storage().Get(ctx, "n")
		if ok && len(v) == 8 {
			return binary.BigEndian.Uint64(v), nil
		}
		return 0, err
	})
	increment = object.Handle(counters, "increment", func(c *counter, ctx context.Context, by uint64) (uint64, error) {
		c.n += by
		var v [8]byte
		binary.BigEndian.PutUint64(v[:], c.n)
		return c.n, c.st.Storage().PutBytes(ctx, "n", v[:])
	})
	tell = object.Handle(counters, "tell", func(c *counter, ctx context.Context, by uint64) (uint64, error) {
		c.n += by
		var v [8]byte
		binary.BigEndian.PutUint64(v[:], c.n)
		if err := c.st.Emit(ctx, "counted", c.n); err != nil {
			return 0, err
		}
		return c.n, c.st.Storage().PutBytes(ctx, "n", v[:])
	})
	arm = object.Handle(counters, "arm", func(c *counter, ctx context.Context, at time.Time) (bool, error) {
		return true, c.st.SetAlarm(ctx, at)
	})
	create = object.Handle(counters, "create", func(c *counter, ctx context.Context, at time.Time) (bool, error) {
		var v [8]byte
		if err := c.st.Storage().PutBytes(ctx, "n", v[:]); err != nil {
			return false, err
		}
		return true, c.st.SetAlarm(ctx, at)
	})
)

// Counters is a host with objects that count. The operations take the number of
// the object, modulo how many there are.
type Counters struct {
	*Host
	objects int
	names   []string // of the first of them: a name that is made in each call would be an allocation of ours
	ctx     context.Context
}

// keptNames bounds the names in memory.
const keptNames = 1 << 20

// OpenCounters opens a host with some counters, which need not exist yet. It has the classes of a
// server, so that Serve can mount one.
func OpenCounters(dir string, objects int, o object.Options, others ...object.Definition) (*Counters, error) {
	h, err := OpenHost(dir, o, server.Definitions(append([]object.Definition{counters}, others...)...)...)
	if err != nil {
		return nil, err
	}
	c := &Counters{Host: h, ctx: context.Background()}
	return c.With(objects), nil
}

// With is the same host with the first n counters only.
func (c *Counters) With(n int) *Counters {
	return &Counters{c.Host, n, Names(min(n, keptNames)), c.ctx}
}

func (c *Counters) name(i int) string {
	if i %= c.objects; i < len(c.names) {
		return c.names[i]
	}
	return Name(i)
}

// Read reads memory.
func (c *Counters) Read(i int) error {
	_, err := read.Call(c.ctx, c.Host, c.name(i), struct{}{})
	return err
}

// Glance reads memory, unconfirmed.
func (c *Counters) Glance(i int) error {
	_, err := read.Call(c.ctx, c.Host, c.name(i), struct{}{}, object.Unconfirmed())
	return err
}

// Load reads one key.
func (c *Counters) Load(i int) error {
	_, err := load.Call(c.ctx, c.Host, c.name(i), struct{}{})
	return err
}

// Increment adds one, durably.
func (c *Counters) Increment(i int) error {
	_, err := increment.Call(c.ctx, c.Host, c.name(i), 1)
	return err
}

// Tell adds one and emits an event, durably.
func (c *Counters) Tell(i int) error {
	_, err := tell.Call(c.ctx, c.Host, c.name(i), 1)
	return err
}

// IncrementOnce adds one under an idempotency key of its own, durably.
func (c *Counters) IncrementOnce(i int) error {
	_, err := increment.Call(c.ctx, c.Host, c.name(i), 1, object.Idempotent(strconv.Itoa(i), time.Hour))
	return err
}

// Arm sets the alarm, durably.
func (c *Counters) Arm(i int, at time.Time) error {
	_, err := arm.Call(c.ctx, c.Host, c.name(i), at)
	return err
}

// Fill makes all counters with a number and, if at is not zero, an alarm.
func (c *Counters) Fill(ctx context.Context, at time.Time) error {
	err := measure.Each(ctx, 256, c.objects, func(i int) error {
		if at.IsZero() {
			_, err := increment.Call(ctx, c.Host, c.name(i), 1, object.Unconfirmed())
			return err
		}
		_, err := create.Call(ctx, c.Host, c.name(i), at.Add(time.Duration(i)*time.Microsecond), object.Unconfirmed())
		return err
	})
	if err != nil {
		return err
	}
	return c.Durable()
}

// Wake reads memory of each counter once, so that all are live.
func (c *Counters) Wake(ctx context.Context) error {
	return measure.Each(ctx, 64, c.objects, c.Read)
}
