package object_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

type cart struct {
	st    *object.State
	total int
	fired chan object.AlarmInfo
}

var (
	fired = make(chan object.AlarmInfo, 10)
	carts = object.Define("cart", func(ctx context.Context, st *object.State) (*cart, error) {
		c := &cart{st: st}
		_, err := st.Storage().GetInto(ctx, "total", &c.total)
		return c, err
	})
	add = object.Handle(carts, "add", func(c *cart, ctx context.Context, n int) (int, error) {
		c.total += n
		if n == 13 {
			c.st.Storage().Put(ctx, "total", 99)
			return 0, errors.New("unlucky")
		}
		if n == 14 {
			panic("x")
		}
		if err := c.st.Storage().Put(ctx, "total", c.total); err != nil {
			return 0, err
		}
		return c.total, c.st.SetAlarm(ctx, c.st.Now().Add(20*time.Millisecond))
	})
	get = object.Handle(carts, "get", func(c *cart, ctx context.Context, _ struct{}) (int, error) { return c.total, nil })
	both = object.Handle(carts, "both", func(c *cart, ctx context.Context, other string) (int, error) {
		return add.Call(ctx, c.st, other, 1)
	})
)

func (c *cart) Alarm(ctx context.Context, info object.AlarmInfo) error {
	fired <- info
	if info.Attempt == 1 {
		return object.RetryAfter(time.Millisecond, errors.New("first"))
	}
	return c.st.Storage().DeleteAll(ctx)
}

func TestSmoke(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	h, err := object.Open(object.Options{Dir: dir}, carts)
	if err != nil {
		t.Fatal(err)
	}
	v, err := add.Call(ctx, h, "alice", 5)
	t.Log(v, err)
	v, err = add.Call(ctx, h, "alice", 5, object.Idempotent("k", 0))
	t.Log(v, err)
	v, err = add.Call(ctx, h, "alice", 5, object.Idempotent("k", 0))
	t.Log(v, err)
	v, err = add.Call(ctx, h, "alice", 13)
	t.Log(v, err)
	v, err = add.Call(ctx, h, "alice", 14)
	t.Log(v, errors.Is(err, object.ErrPanic))
	v, err = get.Call(ctx, h, "alice", struct{}{})
	t.Log(v, err)
	v, err = both.Call(ctx, h, "bob", "alice")
	t.Log(v, err)
	_, err = both.Call(ctx, h, "bob", "bob")
	t.Log(err)
	t.Log(<-fired)
	t.Log(<-fired)
	in, err := h.Inspect(ctx, carts.ID("alice"))
	t.Logf("%+v %v", in, err)
	if err := h.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	h, err = object.Open(object.Options{Dir: dir}, carts)
	if err != nil {
		t.Fatal(err)
	}
	infos, err := h.Objects(ctx, "cart", "", 10)
	t.Log(infos, err)
	v, err = get.Call(ctx, h, "alice", struct{}{})
	t.Log(v, err)
	if err := h.Store().Check(); err != nil {
		t.Fatal(err)
	}
	if err := h.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}
