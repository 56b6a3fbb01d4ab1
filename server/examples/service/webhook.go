package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/webhook"
)

// hooksOf makes the webhooks. A URL of the flag may be on this machine, and is tried again after seconds in place of hours.
func hooksOf(o options) (*webhook.Webhooks, error) {
	if err := os.MkdirAll(o.dir, 0o755); err != nil { // first, so that a wrong directory leaves no key
		return nil, err
	}
	key, err := keyOf(o.dir + ".webhook-key")
	if err != nil {
		return nil, err
	}
	c := webhook.Config{Key: key}
	if o.webhook != "" {
		c.AllowPrivate = true
		for range 60 {
			c.Waits = append(c.Waits, time.Second)
		}
	}
	return webhook.New(c)
}

// keyOf reads the key of the secrets from a file beside the store, and makes it the first time.
func keyOf(file string) ([]byte, error) {
	key, err := os.ReadFile(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	key = make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return key, os.WriteFile(file, key, 0o600)
}

// subscribe sends deposits to a URL, unless an earlier process of the store has subscribed it already.
func subscribe(ctx context.Context, hooks *webhook.Webhooks, host *object.Host, url string, stdout io.Writer) error {
	if url == "" {
		return nil
	}
	list, err := hooks.List(ctx, host, "", webhook.MaxSubscriptions)
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.URL == url {
			return nil
		}
	}
	_, secret, err := hooks.Add(ctx, host, webhook.Subscription{URL: url, Class: Accounts.Name(), Kinds: []string{"deposited"}})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "Deposits are sent to %s. The secret of their signatures is %s\n", url, secret)
	return err
}
