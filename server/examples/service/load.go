package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// load keeps the host busy with made-up work, ten beats a second, until ctx ends.
func load(ctx context.Context, host *object.Host) error {
	for _, currency := range []string{"dollar", "krona", "yen"} {
		if _, err := Rates.Start(ctx, host, currency, Rate{}); err != nil {
			return ended(ctx, err)
		}
	}
	first := time.Now().UnixMilli() // ids of a later process are others
	beat := time.NewTicker(100 * time.Millisecond)
	defer beat.Stop()
	for i := first; ; i++ {
		if err := work(ctx, host, i); err != nil {
			return ended(ctx, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
		}
	}
}

// work is the work of one beat.
func work(ctx context.Context, host *object.Host, i int64) error {
	customer := fmt.Sprintf("customer-%d", i%20)
	_, err := Deposit.Call(ctx, host, customer, int(1+i%100))
	if err == nil {
		_, err = Index.Add(ctx, host, fmt.Sprintf("document-%d", i%5), Change{Page: int(i % 300)})
	}
	if err == nil {
		_, err = Thumbs.Enqueue(ctx, host, Picture{Name: fmt.Sprintf("%d.jpg", i), Bad: i%50 == 0})
	}
	if err == nil && i%10 == 0 {
		_, err = Orders.Start(ctx, host, fmt.Sprint(i), Order{Customer: customer, Cents: int(i % 6000)})
	}
	return err
}

// ended returns err unless it only says that the service ends.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, object.ErrShutdown) {
		return nil
	}
	return err
}
