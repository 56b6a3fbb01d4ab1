package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/dashboard"
	"github.com/holdfast-dev/holdfast/storage"
)

// Proves V13: the first page names all that failed, died or is stuck, with its errors from the role reader on.
func TestOverview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, memory(), nil)
		s.fill()
		for who, reads := range map[string]bool{"viewer": false, "reader": true} {
			a := s.ask(who, "GET", "/ui/overview", "")
			for _, want := range []string{"report/f", "order/f", "<strong>2</strong>", ">thumb<", "1 failed", `href="go?class=report&amp;name=f`, "the store was new"} {
				if !strings.Contains(a.body, want) {
					t.Errorf("the page of %s has no %s", who, want)
				}
			}
			if got := strings.Contains(a.body, secret); got != reads || a.status != 200 || len(a.body) > 60<<10 {
				t.Errorf("V13: %s reads errors: %v; %d bytes, status %d", who, got, len(a.body), a.status)
			}
			b := s.ask(who, "GET", "/ui/recoveries", "")
			if b.status != 200 || strings.Contains(b.body, secret) {
				t.Errorf("%s sees %d %s", who, b.status, b.body)
			}
		}
		for at, body := range s.crawl("viewer", "/ui/overview") {
			if strings.Contains(body, secret) {
				t.Errorf("V13: a viewer sees a secret at %s", at)
			}
		}
	})
}

// The page goes on to answer when the host has ended.
func TestOverviewOfAHostThatHasEnded(t *testing.T) {
	f := start(t, nil, bells)
	if err := f.host.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := f.ask("viewer", "GET", "/ui/overview", "")
	if a.status != http.StatusOK || !strings.Contains(a.body, "it is shutting down") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// A look is shown for a second, so that many browsers cost one.
func TestOverviewLooksOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shopInTime(t)
		ask := func() string { return s.direct("reader", "GET", "/ui/overview", "", 200) }
		if strings.Contains(ask(), "no card") {
			t.Fatal("it tells of a run that there is not yet")
		}
		s.direct("caller", "PUT", "/v1/jobs/order/f", `"bad"`, 201)
		synctest.Wait()
		if strings.Contains(ask(), "no card") {
			t.Error("it has looked again within a second")
		}
		began := time.Now()
		if part := s.direct("reader", "GET", "/ui/overview?part=overview", "", 200); !strings.Contains(part, "no card") || time.Since(began) != overviewAge {
			t.Errorf("a part that is asked for after a change has waited %v, and shows %s", time.Since(began), part)
		}
		time.Sleep(overviewAge)
		if !strings.Contains(ask(), "no card") {
			t.Error("it has not looked again after a second")
		}
		_ = s.host.Shutdown(t.Context())
	})
}

// Dead letters with one error are one line, those with the newest first, with the counts of the last hour and day on both
// sides of their ends; a viewer gets one line a kind.
func TestDeadLettersAreCounted(t *testing.T) {
	now := time.Unix(1e6, 0)
	var letters []object.DeadLetter
	for i, age := range []time.Duration{0, time.Hour, time.Hour + 1, 24 * time.Hour, 24*time.Hour + 1, 48 * time.Hour} {
		letters = append(letters, object.DeadLetter{ID: storage.ID{Class: "a", Name: fmt.Sprint(i)}, Kind: "task", LastError: fmt.Sprint("e", i%2), Died: now.Add(-age)})
	}
	letters = append(letters, object.DeadLetter{ID: storage.ID{Class: "a", Name: "6"}, Kind: "task", LastError: "e1", Died: now.Add(-72 * time.Hour)})
	want := []dashboard.DeadCount{
		{Class: "a", Kind: "task", Error: "e0", Count: 3, Hour: 1, Day: 2, Newest: now},
		{Class: "a", Kind: "task", Error: "e1", Count: 4, Hour: 1, Day: 2, Newest: now.Add(-time.Hour)},
	}
	counts := countDead(letters, now)
	if !slices.Equal(counts, want) {
		t.Errorf("counted %+v, want %+v", counts, want)
	}
	slices.Reverse(counts)
	all := dashboard.DeadCount{Class: "a", Kind: "task", Count: 7, Hour: 2, Day: 4, Newest: now}
	if got := withoutErrors(counts); !slices.Equal(got, []dashboard.DeadCount{all}) || counts[0].Error == "" {
		t.Errorf("without errors %+v, want %+v", got, all)
	}
}
