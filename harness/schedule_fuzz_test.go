package harness

import (
	"reflect"
	"testing"
)

// A text is a schedule or an error. A schedule that is written and read again is the
// same one.
func FuzzParseSchedule(f *testing.F) {
	f.Add("v1:seed=0")
	f.Add("v1:seed=7:slow=a%2c#1,by=1m0s:zombie=b,by=-1s,keep=2:crash=commit/after/cart/a#2,keep=all:crash=sync/before/#1,torn=7")
	f.Add("v1:crash=a,keep=-1")
	f.Add("v1:failcommit=a,keep=-9223372036854775808")
	f.Add("v1:slow=a,keep=3")
	f.Add("v1:seed=2:lostanswer=effect/answer/pay#1")
	f.Add("v1:seed=1:crash=%zz")
	f.Add("v1::")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseSchedule(text)
		if err != nil {
			return
		}
		for _, c := range p.crashes {
			if c.keep < 0 || c.torn != 0 && c.keep != 0 {
				t.Fatalf("%q has a crash that cannot be: %+v", text, c)
			}
		}
		for _, s := range p.faults {
			if s.keep < 0 {
				t.Fatalf("%q has a fault that cannot be: %+v", text, s)
			}
		}
		again, err := parseSchedule(p.String())
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Fatalf("%q is %+v, written as %s and read as %+v, %v", text, p, p, again, err)
		}
	})
}
