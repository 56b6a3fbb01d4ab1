package bench

import (
	"testing"

	"github.com/holdfast-dev/holdfast/bench/internal/workload"
)

// webs are the requests of P31, P33 and P34, of 64 connections.
var webs = map[string]workload.WebOptions{
	"P31": {Connections: 64, Objects: 1, Method: "increment", Argument: "1"},
	"P33": {Connections: 64, Objects: 1000, Method: "read", Argument: "null"},
	"P34": {Connections: 64, Objects: 1, Method: "increment", Argument: "1", Token: true, Keys: true},
}

func BenchmarkP31(b *testing.B) { web(b, webs["P31"]) }
func BenchmarkP33(b *testing.B) { web(b, webs["P33"]) }
func BenchmarkP34(b *testing.B) { web(b, webs["P34"]) }

// web sends b.N requests to the server and to plain net/http.
func web(b *testing.B, o workload.WebOptions) {
	b.Run("ours", func(b *testing.B) {
		w, err := openCounters(b, o.Objects).Serve(o, b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		closeAfter(b, w.Close)
		each(b, o.Connections, w.Send)
	})
	b.Run("reference", func(b *testing.B) {
		plain := o
		plain.Token, plain.Keys = false, false
		w, err := workload.ServeRaw(openTurns(b, o.Objects), plain)
		if err != nil {
			b.Fatal(err)
		}
		closeAfter(b, w.Close)
		each(b, o.Connections, w.Send)
	})
}
