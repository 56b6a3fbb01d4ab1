package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"

	"github.com/holdfast-dev/holdfast/server/auth"
)

// signer is an Authenticator with sessions, as *auth.TokenFile is one.
type signer interface {
	SignIn(r *http.Request, token string, secure bool) (auth.Principal, *http.Cookie, error)
	SignOut(secure bool) *http.Cookie
}

// signBody bounds the body of a sign-in, because anyone may send one.
const signBody = 4 << 10

// signIn is the body of a sign-in.
type signIn struct {
	Token string `json:"token"`
}

// signedIn is the answer to a sign-in: the rights of the principal, for the page of the browser.
type signedIn struct {
	ID     string       `json:"id"`
	Name   string       `json:"name"`
	Role   auth.Role    `json:"role"`
	Prefix string       `json:"prefix,omitempty"`
	Grants []auth.Grant `json:"grants,omitempty"`
}

// signRoutes are the routes of the sign-in form.
func (s *Server) signRoutes() []route {
	return []route{
		{method: "POST", pattern: "/signin", access: open, request: signIn{}, answer: signedIn{}, handle: (*exchange).signIn,
			help: "Gives a browser a session of 8 hours in exchange for a token, in JSON or in a form"},
		{method: "POST", pattern: "/signout", access: open, handle: (*exchange).signOut,
			help: "Removes the session from the browser"},
	}
}

// signIn answers with the cookie of a session.
func (x *exchange) signIn() error {
	s, ok := x.config.Auth.(signer)
	if !ok {
		return noSignIn()
	}
	token, err := x.formToken()
	if err != nil {
		return err
	}
	who, cookie, err := s.SignIn(x.r, token, x.overTLS())
	if err != nil {
		return err
	}
	x.signed(who, "sign in")
	http.SetCookie(x.w, cookie)
	return x.json(http.StatusOK, signedIn{who.ID, who.Name, who.Role, who.Prefix, who.Grants})
}

// signOut answers with a cookie that removes that of the session.
func (x *exchange) signOut() error {
	s, ok := x.config.Auth.(signer)
	if !ok {
		return noSignIn()
	}
	x.signsOut()
	http.SetCookie(x.w, s.SignOut(x.overTLS()))
	return x.empty()
}

// signed notes a sign-in or a sign-out in the audit.
func (x *exchange) signed(who auth.Principal, verb string) {
	x.who = who
	x.note(auditEntry{Verb: verb, Outcome: done})
}

// signsOut notes the sign-out of a principal, if the request has one still.
func (x *exchange) signsOut() {
	if who, err := x.config.Auth.Authenticate(x.r); err == nil {
		x.signed(who, "sign out")
	}
}

// overTLS reports whether the browser has come over TLS, so that the cookie must go by no other way.
func (x *exchange) overTLS() bool { return x.r.TLS != nil || x.config.BehindTLS }

// formType is the media type of a form of a browser.
const formType = "application/x-www-form-urlencoded"

// formToken returns the token of the body. Its errors do not repeat the body.
func (x *exchange) formToken() (string, error) {
	kind, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && kind != formType {
		return "", &problem{Type: "bad-content-type", Title: "The body must be JSON or a form.", Status: http.StatusUnsupportedMediaType, Outcome: none}
	}
	b, err := x.bodyUpTo(signBody)
	if err != nil {
		return "", err
	}
	token, ok := parseToken(kind, b)
	if !ok {
		return "", badRequest("the body must have the field token once, and no other")
	}
	return token, nil
}

// parseToken returns the field token of a body in JSON or of a form, which has no other field.
func parseToken(kind string, body []byte) (token string, ok bool) {
	if kind == "application/json" {
		var in signIn
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		err := d.Decode(&in)
		_, end := d.Token()
		return in.Token, err == nil && end == io.EOF && in.Token != ""
	}
	form, err := url.ParseQuery(string(body))
	return form.Get("token"), err == nil && len(form) == 1 && len(form["token"]) == 1 && form.Get("token") != ""
}

// noSignIn is the problem of a server without sessions, for example one of auth.Insecure.
func noSignIn() error {
	return &problem{Type: "no-sign-in", Title: "The server has no sign-in.", Status: http.StatusNotFound, Outcome: none}
}

// triesProblem is the problem of an address that has brought too many wrong tokens.
func triesProblem(err error) *problem {
	var many *auth.TooManyTriesError
	if !errors.As(err, &many) {
		return nil
	}
	return &problem{Type: "too-many-tries", Title: "Too many wrong tokens came from this address.", Status: http.StatusTooManyRequests, Outcome: none, Retryable: true,
		retryAfter: int(math.Ceil(many.After.Seconds()))}
}
