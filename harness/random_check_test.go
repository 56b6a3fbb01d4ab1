package harness_test

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// randomCarts adds to some carts and compares with a model.
func randomCarts(s *harness.Sim, rt *rapid.T) {
	s.Host(carts)
	model := map[string]int{}
	rt.Repeat(map[string]func(*rapid.T){
		"add": func(rt *rapid.T) {
			name, n := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "cart"), rapid.IntRange(1, 9).Draw(rt, "n")
			key := fmt.Sprint(s.Now().UnixNano(), len(model), model[name])
			model[name] += n
			s.OK(s.Retry(func() error {
				_, err := cartAdd.Call(s.Context(), s, name, n, object.Idempotent(key, 0))
				return err
			}))
		},
		"wait":    func(rt *rapid.T) { s.Advance(time.Duration(rapid.IntRange(0, 3600).Draw(rt, "seconds")) * time.Second) },
		"restart": func(*rapid.T) { s.Restart() },
		"": func(rt *rapid.T) {
			for name, want := range model {
				var total int
				if _, err := harness.Stored(s.Store(), carts.ID(name), "total", &total); err != nil || total != want {
					rt.Fatalf("%s has %d, %v, want %d", name, total, err, want)
				}
			}
		},
	})
}
