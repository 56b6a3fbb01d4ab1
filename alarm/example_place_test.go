package alarm_test

import (
	"fmt"
	"log"
	"runtime"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
)

// noAlarms is an index without an entry.
type noAlarms struct{}

func (noAlarms) Scan(int, alarm.Position, int) ([]alarm.Entry, error) { return nil, nil }

// The scheduler has one alarm, which is due in an hour.
func ExampleScheduler_Explain() {
	s, err := alarm.NewScheduler(alarm.Config{Shards: 1, Source: noAlarms{}, Fire: func([]alarm.Entry) {}})
	if err != nil {
		log.Fatal(err)
	}
	s.Start()
	defer s.Stop()
	for !s.Explain(0, "cart", "7").All {
		runtime.Gosched() // until the index has been read
	}
	s.Set(alarm.Entry{Due: time.Now().Add(time.Hour), Object: 1, Class: "cart", Name: "7"})
	fmt.Println(s.Explain(0, "cart", "7").Where, s.Explain(0, "cart", "8").Where)
	// Output: waiting absent
}
