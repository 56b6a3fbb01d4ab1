package main

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// fault is how the payment server mistreats a request.
type fault int

const (
	none       fault = iota // it does as asked
	refuses                 // it does nothing, and answers 503
	forgets                 // it does as asked, and answers 500
	lateAnswer              // it does as asked, and answers when the client has gone
	lateWork                // it waits until the client has gone, and then does as asked
	faults
)

// percent is how many of a hundred requests meet each fault. The others meet none.
var percent = [faults]int{refuses: 10, forgets: 8, lateAnswer: 5, lateWork: 5}

// slowest is the longest time that the server takes before it looks at a request.
const slowest = 30 * time.Millisecond

// treatment is how long a request waits and which fault it meets. It depends on the
// seed, the key and the number of the request under that key, so two runs with one seed
// treat their requests alike.
func treatment(seed uint64, key string, number int) (time.Duration, fault) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // a hash returns no error
	r := rand.New(rand.NewPCG(seed+uint64(number), h.Sum64()))
	delay := time.Duration(r.Int64N(int64(slowest)))
	drawn := r.IntN(100)
	for f := refuses; f < faults; f++ {
		if drawn < percent[f] {
			return delay, f
		}
		drawn -= percent[f]
	}
	return delay, none
}
