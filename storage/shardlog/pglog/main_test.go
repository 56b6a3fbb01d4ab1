package pglog

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/internal/testing/outside"
	"github.com/holdfast-dev/holdfast/internal/testing/prove"
)

// common is the pair of servers that tests share which leave it as it was. It ends with the process.
var common struct {
	once sync.Once
	pair *pgtest.Pair
	err  error
}

// shared returns the common pair.
func shared(t *testing.T) *pgtest.Pair {
	t.Helper()
	bin := outside.Postgres(t)
	common.once.Do(func() { common.pair, common.err = pgtest.Start(bin) })
	if common.err != nil {
		t.Fatal(common.err)
	}
	return common.pair
}

// own starts a pair for a test that does not leave it as it was.
func own(t *testing.T) *pgtest.Pair {
	t.Helper()
	pair, err := pgtest.Start(outside.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pair.Close(); err != nil {
			t.Error(err)
		}
	})
	return pair
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var schemas atomic.Int64

// unhurried is an Options.Timeout that no statement needs, however slow the machine is.
const unhurried = 1000 * time.Hour

// options lead to the primary, in a new schema.
func options(t *testing.T, pair *pgtest.Pair) Options {
	t.Helper()
	o := Options{DSN: pgtest.DSN(pair.Primary.Port), Schema: fmt.Sprint("test", schemas.Add(1)), Node: "n1", Timeout: unhurried}
	must(t, Init(context.Background(), o))
	return o
}

// open opens a log that the end of the test closes.
func open(t *testing.T, o Options) *Log {
	t.Helper()
	l, err := Open(context.Background(), o)
	must(t, err)
	t.Cleanup(l.Close)
	return l
}

// fromEnv is a number that a variable of the environment sets for longer runs. Without it scripts/prove has most.
func fromEnv(t *testing.T, name string, ordinary, most int) int {
	t.Helper()
	text := os.Getenv(name)
	switch {
	case text != "":
	case prove.Long():
		return most
	default:
		return ordinary
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}
