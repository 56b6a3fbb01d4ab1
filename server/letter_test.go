package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/jobs"
)

// Proves V10: the dead letter of an object with a name that a path changes is shown by the query.
func TestLetterByQuery(t *testing.T) {
	s := openShop(t, memory(), nil)
	for _, id := range []string{".", "..", "a/b?c"} {
		s.as("caller", "PUT", "/v1/job?job=order&id="+strings.NewReplacer("/", "%2F", "?", "%3F").Replace(id), `"bad"`, 201, nil)
		s.happened(s.orders.ID(id), jobs.EventFailed)
	}
	letters := s.letters("workflow")
	if len(letters) != 3 {
		t.Fatalf("%+v", letters)
	}
	for _, l := range letters {
		var shown letter
		path := fmt.Sprintf("/v1/letter?class=order&name=%s&seq=%d", strings.NewReplacer("/", "%2F", "?", "%3F").Replace(l.ID.Name), l.Seq)
		if s.as("reader", "GET", path, "", 200, &shown); shown.ID != l.ID || shown.Seq != l.Seq || !strings.Contains(shown.LastError, secret) {
			t.Errorf("%s: %+v", path, shown)
		}
		if a := s.as("viewer", "GET", path, "", 200, nil); strings.Contains(a.body, secret) {
			t.Errorf("a viewer sees %s", a.body)
		}
	}
	s.refused("viewer", "GET", "/v1/letter?class=order&name=.&seq=7", "", 404, "unknown-letter")
	s.refused("viewer", "GET", "/v1/letter?class=order&name=.&seq=x", "", 404, "not-found")
	s.refused("viewer", "GET", "/v1/letter?class=order&seq=1", "", 400, "bad-name")
}

// Proves V6, Y2: all that is stuck is told over HTTP as the host tells it, below reader without errors.
func TestWhyAll(t *testing.T) {
	s := openShop(t, memory(), nil)
	var none why.Overview
	if s.as("viewer", "GET", "/v1/why", "", 200, &none); len(none.Answers)+len(none.Store) > 0 {
		t.Errorf("an empty shop: %+v", none)
	}
	s.fill()
	var all why.Overview
	s.as("reader", "GET", "/v1/why", "", 200, &all)
	want, err := why.All(t.Context(), s.srv.source)
	if err != nil || len(want.Answers) == 0 || len(all.Answers) != len(want.Answers) {
		t.Fatalf("%+v, want %+v, %v", all, want, err)
	}
	found := false
	for i, a := range all.Answers {
		if a.ID != want.Answers[i].ID || a.Code != want.Answers[i].Code {
			t.Errorf("%+v, want %+v", a, want.Answers[i])
		}
		found = found || strings.Contains(a.Error, secret)
	}
	if !found {
		t.Errorf("a reader sees no error: %+v", all)
	}
	if a := s.as("viewer", "GET", "/v1/why", "", 200, nil); strings.Contains(a.body, secret) {
		t.Errorf("a viewer sees %s", a.body)
	}
}
