package harness

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// The line for Replay comes with the options that belong to it.
func TestOptionsInWords(t *testing.T) {
	for want, opts := range map[string][]Option{
		"with the options of this test: store map": {Depth(2), Budget(5), Workers(2), Seed(3)},
		"with the options of this test: store pebble; 1 shard; settles for 1h0m0s; downtime 1s; HostOptions; " +
			"Faults {FailCommit:1 Slow:0s ClockJump:0s DropWake:0 DupAlarm:0 LateMessage:0 DupMessage:0 Zombie:0 LostAnswer:0}; checked by NoLostAck, OneAlarm, NoDoubleEffect": {
			PebbleStore(), Shards(1), Settle(time.Hour), Downtime(time.Second), HostOptions(func(*object.Options) {}),
			AllowFaults(Faults{FailCommit: 1}), NoLostAck, OneAlarm, NoDoubleEffect("x"),
		},
	} {
		if got := newConfig(opts).words(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
