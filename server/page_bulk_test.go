package server

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// pageOf is a page as a browser of a principal gets it, without a network.
func (s *shop) pageOf(who, at string) string {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://localhost/ui/"+at, nil)
	r.Header.Set("Authorization", "Bearer "+who)
	w := httptest.NewRecorder()
	if s.srv.ServeHTTP(w, r); w.Code != http.StatusOK {
		s.t.Fatalf("%s gets %d of %s: %s", who, w.Code, at, w.Body)
	}
	return w.Body.String()
}

// Proves V13, V21: the page Bulk has the runs of all principals, the newest first and in pages, with their progress and
// outcome, also those of an earlier process; and each leads to its own page.
func TestRunsOnTheirPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memstore.New()
		s := shopOn(t, engine)
		if text := pageText(s.pageOf("operator", "bulkruns")); !strings.Contains(text, "There is none here.") {
			t.Errorf("without runs: %s", text)
		}
		first := bulkLines(t, s.direct("operator", "POST", "/v1/jobs:run", s.stopped(3), 200))[0].ID
		var c jobadmin.Count
		if err := json.Unmarshal([]byte(s.direct("other", "POST", "/v1/dead:count", `{"do": "discard", "class": "<b>"}`, 200)), &c); err != nil {
			t.Fatal(err)
		}
		second := bulkLines(t, s.direct("other", "POST", "/v1/dead:run", `{"token": "`+c.Token+`"}`, 200))[0].ID
		left := engine.Crash(0)
		if err := s.host.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := shopOn(t, left)
		again.srv.bulk.put("0run", func() *problem { time.Sleep(time.Minute); return nil })
		running := bulkState{Of: deadOf, Who: "admin", Name: "Ann", Matches: 9, Day: today(again.host), Began: time.Now(), Bulk: jobadmin.Bulk{Verb: replayVerb, At: time.Now()}}
		if _, err := bulkBegin.Call(t.Context(), again.host, "0run", running); err != nil {
			t.Fatal(err)
		}
		again.tearRun("zz")

		body := again.pageOf("operator", "bulkruns")
		var places []int
		for _, id := range []string{"0run", second, first, "zz"} {
			places = append(places, strings.Index(body, `href="bulkrun?id=`+id+`"`))
		}
		if places[0] < 0 || places[3] >= 0 || !slices.IsSorted(places[:3]) {
			t.Errorf("V21: the runs are at %v: %s", places, body)
		}
		text := pageText(body)
		for _, want := range []string{
			"resume jobs done 3 of 3", "discard dead letters done 0 of 0", "replay dead letters running 0 of 9", "Ann", `{"class":"\u003cb\u003e"}`, "zz unreadable", "unexpected end of JSON",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("V21: the page has no %q: %s", want, text)
			}
		}
		if one := pageText(again.pageOf("operator", "bulkruns?running=1")); !strings.Contains(one, "replay dead letters") || strings.Contains(one, "resume jobs") {
			t.Errorf("V21: those under way: %s", one)
		}
		if page := again.pageOf("operator", "bulkruns?limit=1"); !strings.Contains(page, "0run") || strings.Contains(page, first) || !strings.Contains(page, "Next page") {
			t.Errorf("V21: a page of one: %s", page)
		}
		if text := pageText(again.pageOf("other", "bulkrun?id="+first)); !strings.Contains(text, "resume jobs") || !strings.Contains(text, "It has ended.") || !strings.Contains(text, "3 of 3") || !strings.Contains(html.UnescapeString(text), `"class":"report"`) {
			t.Errorf("V21: the run of an earlier process: %s", text)
		}
		for who, sees := range map[string]bool{"reader": false, "operator": true, "admin": true} {
			if got := strings.Contains(again.pageOf(who, "overview"), `href="bulkruns"`); got != sees {
				t.Errorf("V13: %s has the link: %v", who, got)
			}
		}
	})
}

// tearRun stores a run that cannot be read.
func (s *shop) tearRun(id string) {
	s.t.Helper()
	damaged := object.Copy{ID: storage.ID{Class: bulkClass, Name: id}, Label: bulkRunning}
	err := s.host.Import(s.t.Context(), object.Import{Copy: damaged, Rows: func(_ map[uint64]uint64, key func(string, []byte) error, _ func(string, time.Time, []byte) error) error {
		return key(bulkRow, []byte(`{"of":`))
	}})
	if err != nil {
		s.t.Fatal(err)
	}
}
