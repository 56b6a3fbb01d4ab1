package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/holdfast-dev/holdfast/object"
)

// workerConfig is the order that the program gives to its worker.
type workerConfig struct {
	Store    string `json:"store"`
	Payments string `json:"payments"` // address of the payment server
}

// allowance is a line on the standard input of the worker: the orders 1 to UpTo may be
// placed.
type allowance struct {
	UpTo int `json:"up_to"`
}

// work is the process of the worker: a host with the workflows of all orders. It ends in
// order when its standard input does.
func work(ctx context.Context, c workerConfig, stdin io.Reader, tell func(event)) error {
	s := newShop(newHTTPBank(c.Payments), packingTime, func(number int) { tell(event{Kind: evCharged, Order: number}) })
	host, err := object.Open(object.Options{Dir: c.Store, Logger: slog.New(slog.DiscardHandler)}, s.definitions()...)
	if err != nil {
		return err
	}
	s.open(host)
	tell(event{Kind: evReady})
	limits := make(chan int)
	ctx, cancel := untilEnd(ctx, stdin, func(line []byte) {
		var a allowance
		if json.Unmarshal(line, &a) == nil {
			limits <- a.UpTo
		}
	})
	defer cancel()
	d := &desk{shop: s, host: host, tell: tell}
	err = errors.Join(d.serve(ctx, limits), tellStocks(host, tell))
	late, stop := context.WithTimeout(context.Background(), endTime)
	defer stop()
	return errors.Join(err, host.Shutdown(late))
}

// tellStocks tells the stock of each item.
func tellStocks(host *object.Host, tell func(event)) error {
	for i := range items {
		s, err := count.Call(context.Background(), host, itemName(i), struct{}{})
		if err != nil {
			return err
		}
		tell(event{Kind: evStock, Item: itemName(i), Stock: s})
	}
	return nil
}

// desk places orders and waits until they have ended. After a crash it places the same
// orders again: those that are there stay as they are.
type desk struct {
	shop *shop
	host *object.Host
	tell func(event)
}

// serve places the orders up to each limit. It returns when ctx ends, or when an order
// cannot be placed.
func (d *desk) serve(ctx context.Context, limits <-chan int) error {
	failed := make(chan error, 1)
	waiting, cancel := context.WithCancel(ctx)
	var customers sync.WaitGroup
	defer customers.Wait()
	defer cancel()
	placed := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case limit := <-limits:
			for ; placed < limit; placed++ {
				o := orderOf(placed + 1)
				customers.Go(func() {
					if err := d.customer(waiting, o); err != nil && waiting.Err() == nil {
						select {
						case failed <- err:
						default:
						}
					}
				})
			}
		}
	}
}

// customer places an order, waits for its end, and tells it.
func (d *desk) customer(ctx context.Context, o order) error {
	if err := d.shop.place(ctx, d.host, o); err != nil {
		return err
	}
	end, err := d.shop.wait(ctx, d.host, o)
	if err != nil {
		return err
	}
	d.tell(event{Kind: evEnded, Order: o.Number, Outcome: end.outcome, Charge: end.charge})
	return nil
}
