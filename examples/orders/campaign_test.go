package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// idleCampaign has children without processes.
func idleCampaign(t *testing.T) *campaign {
	c := &campaign{s: settings{orders: 5}, tally: newTally(), meter: newMeter(t.Output()), stall: time.Hour, kills: map[role]int{}}
	c.children = map[role]*child{}
	for _, r := range []role{worker, paymentServer} {
		c.children[r] = &child{role: r, over: make(chan struct{})}
	}
	return c
}

func never() bool { return false }

// The program waits as long as orders move, and no longer.
func TestAwaitEnds(t *testing.T) {
	c := idleCampaign(t)
	c.tally.hear(worker)(event{Kind: evEnded, Order: 3, Outcome: shipped})
	if err := c.await(context.Background(), func() bool { return c.tally.ended() == 1 }); err != nil {
		t.Errorf("an order that has ended: %v", err)
	}

	c.stall = time.Millisecond
	if err := c.await(context.Background(), never); !errors.Is(err, errStalled) {
		t.Errorf("without a move: %v", err)
	}

	c = idleCampaign(t)
	interrupted, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.await(interrupted, never); !errors.Is(err, errInterrupted) {
		t.Errorf("interrupted: %v", err)
	}

	for _, r := range []role{worker, paymentServer} {
		for _, how := range []error{nil, errors.New("exit status 2")} {
			c := idleCampaign(t)
			c.children[r].err = how
			close(c.children[r].over)
			err := c.await(context.Background(), never)
			if err == nil || !strings.HasPrefix(err.Error(), "the "+string(r)+" has ended") || how != nil && !errors.Is(err, how) || c.children[r] != nil {
				t.Errorf("%s ends with %v: %v", r, how, err)
			}
		}
	}
}
