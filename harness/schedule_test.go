package harness

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPlanText(t *testing.T) {
	p := schedule{7, []crash{{`commit/after/cart/a:b,"c" %#2`, 0, 0}, {"sync/before/#1", keepAll, 0}, {"ack/after/#2", 0, 7}}, nil}
	want := `v1:seed=7:crash=commit/after/cart/a%3ab%2c%22c%22%20%25#2,keep=0:crash=sync/before/#1,keep=all:crash=ack/after/#2,torn=7`
	if got := p.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPlanTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := schedule{seed: rapid.Uint64().Draw(rt, "seed")}
		for range rapid.IntRange(0, 3).Draw(rt, "crashes") {
			keep := rapid.SampledFrom([]int{0, 1, 17, keepAll}).Draw(rt, "keep")
			p.crashes = append(p.crashes, crash{at: rapid.String().Draw(rt, "at"), keep: keep})
		}
		for range rapid.IntRange(0, 3).Draw(rt, "faults") {
			f := fault{kind: rapid.SampledFrom(faultKinds).Draw(rt, "kind"), at: rapid.String().Draw(rt, "at")}
			f.by = time.Duration(rapid.Int64().Draw(rt, "by"))
			if f.kind == failCommit || f.kind == zombie {
				f.keep = rapid.SampledFrom([]int{0, 1, keepAll}).Draw(rt, "keep")
			}
			p.faults = append(p.faults, f)
		}
		got, err := parseSchedule(p.String())
		if err != nil || !reflect.DeepEqual(got, p) {
			rt.Fatalf("%s gives %+v, %v, want %+v", p, got, err, p)
		}
		if strings.ContainsAny(p.String(), "\"`\\ \n") {
			rt.Fatalf("%s does not fit into a quoted string", p)
		}
	})
}

func TestBadPlans(t *testing.T) {
	for _, text := range []string{"", "v2:seed=1", "v1:seed=x", "v1:crash=a,keep=x", "v1:crash=%zz,keep=1", "v1:crash=%4,keep=1", "v1:sneeze=1",
		"v1:slow=a,by=x", "v1:slow=a,for=1s", "v1:zombie=%4", "v1:failcommit=a,keep=x", "v1:crash=a,keep=-1",
		"v1:zombie=a,keep=-1", "v1:lostanswer=a,keep=1", "v1:slow=a,keep=1"} {
		if p, err := parseSchedule(text); err == nil {
			t.Errorf("%q is taken for %+v", text, p)
		}
	}
}
