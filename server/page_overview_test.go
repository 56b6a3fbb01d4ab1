package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Proves V13: the first page names all that failed, died or is stuck, with its errors from the role reader on.
func TestOverview(t *testing.T) {
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

// Dead letters with one error are one line, and a viewer gets one line a kind.
func TestDeadLettersAreCounted(t *testing.T) {
	var letters []object.DeadLetter
	at := time.Unix(1000, 0)
	for i := range 7 {
		letters = append(letters, object.DeadLetter{ID: storage.ID{Class: "a", Name: fmt.Sprint(i)}, Kind: "task", LastError: fmt.Sprint("e", i%2), Died: at.Add(time.Duration(i))})
	}
	counts := countDead(letters)
	if len(counts) != 2 || counts[0].Count != 4 || counts[0].Error != "e0" || counts[1].Count != 3 || !counts[1].Newest.Equal(at.Add(5)) {
		t.Errorf("counted %+v", counts)
	}
	if all := withoutErrors(counts); len(all) != 1 || all[0].Count != 7 || all[0].Error != "" || !all[0].Newest.Equal(at.Add(6)) || counts[0].Error == "" {
		t.Errorf("without errors %+v", all)
	}
}
