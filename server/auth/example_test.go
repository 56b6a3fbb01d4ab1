package auth_test

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/server/auth"
)

// newTokens makes a file of tokens in a directory that done removes.
func newTokens() (tokens *auth.TokenFile, done func()) {
	dir, err := os.MkdirTemp("", "tokens")
	if err != nil {
		log.Fatal(err)
	}
	tokens, err = auth.Tokens(filepath.Join(dir, "tokens.json"), auth.Options{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	return tokens, func() {
		if err := errors.Join(tokens.Close(), os.RemoveAll(dir)); err != nil {
			log.Fatal(err)
		}
	}
}

// A file that is not there is an error of one line, which says how to make it.
func ExampleTokens() {
	_, err := auth.Tokens("none.json", auth.Options{})
	fmt.Println(err)
	// Output: auth: file of tokens none.json: file does not exist: make it with: holdfast token add --file none.json
}

// A worker of the customer acme may add to the carts of acme, and read nothing.
func ExampleTokenFile_Add() {
	tokens, done := newTokens()
	defer done()
	added, text, err := tokens.Add(auth.Token{Name: "worker of acme", Grants: []auth.Grant{{Class: "cart", Prefix: "acme/", Names: []string{"add"}}}})
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/v1/objects/cart/acme%2F1/call/add", nil)
	r.Header.Set("Authorization", "Bearer "+text)
	who, err := tokens.Authenticate(r)
	fmt.Println(who.ID == added.ID, who.Name, who.Role, err)
	fmt.Println(who.MayCall("cart", "acme/1", "add"), who.MayCall("cart", "other/1", "add"))

	_, _, err = tokens.Add(auth.Token{Name: "too wide", Role: auth.Viewer, Prefix: "acme"})
	fmt.Println(err != nil) // the prefix would cover acme2 too
	// Output:
	// true worker of acme none <nil>
	// true false
	// true
}

// A token that is revoked is refused at once.
func ExampleTokenFile_Revoke() {
	tokens, done := newTokens()
	defer done()
	added, text, err := tokens.Add(auth.Token{Name: "ci", Role: auth.Operator})
	if err != nil {
		log.Fatal(err)
	}
	if err := tokens.Revoke(added.ID); err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/v1/jobs", nil)
	r.Header.Set("Authorization", "Bearer "+text)
	_, err = tokens.Authenticate(r)
	fmt.Println(err)
	fmt.Println(errors.Is(tokens.Revoke(added.ID), auth.ErrNoToken))
	// Output:
	// auth: bad credentials: the token is wrong, revoked or expired
	// true
}

func ExampleTokenFile_List() {
	tokens, done := newTokens()
	defer done()
	if _, _, err := tokens.Add(auth.Token{Name: "ci", Role: auth.Operator}); err != nil {
		log.Fatal(err)
	}
	for _, t := range tokens.List() {
		fmt.Println(t.Name, t.Role, t.LastUse.IsZero())
	}
	// Output: ci operator true
}

// A browser gets a cookie in exchange for a token. The server has a route for it, /signin.
func ExampleTokenFile_SignIn() {
	tokens, done := newTokens()
	defer done()
	_, text, err := tokens.Add(auth.Token{Name: "ann", Role: auth.Viewer})
	if err != nil {
		log.Fatal(err)
	}
	form := httptest.NewRequest("POST", "/signin", nil)
	who, cookie, err := tokens.SignIn(form, text, true)
	fmt.Println(who.Name, cookie.Name, cookie.Secure, cookie.HttpOnly, err)

	page := httptest.NewRequest("GET", "/v1/jobs", nil)
	page.AddCookie(cookie)
	who, err = tokens.Authenticate(page)
	fmt.Println(who.Name, who.Role, err)

	_, _, err = tokens.SignIn(form, "guessed", true)
	fmt.Println(errors.Is(err, auth.ErrBadCredentials))
	// Output:
	// ann __Host-holdfast true true <nil>
	// ann viewer <nil>
	// true
}

func ExampleTokenFile_SignOut() {
	tokens, done := newTokens()
	defer done()
	fmt.Println(tokens.SignOut(false))
	// Output: holdfast=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax
}

// Without tokens only requests from this machine are answered.
func ExampleInsecure() {
	r := httptest.NewRequest("GET", "/v1/jobs", nil)
	for _, peer := range []string{"127.0.0.1:4711", "192.0.2.1:4711"} {
		r.RemoteAddr = peer
		who, err := auth.Insecure().Authenticate(r)
		fmt.Println(who.Role, err)
	}
	// Output:
	// admin <nil>
	// none auth: bad credentials: without tokens only requests from this machine are answered
}

// A process of the same user is an admin over a Unix socket, unless it brings a token.
func ExamplePeer() {
	r := httptest.NewRequest("GET", "/v1/jobs", nil)
	who, ok := auth.Peer(r)
	fmt.Println(who.Role, who.MayCall("cart", "anna", "add"), ok)
	r.Header.Set("Authorization", "Bearer x")
	_, ok = auth.Peer(r)
	fmt.Println(ok)
	// Output:
	// admin true true
	// false
}

// A server asks whether the principal of a run that it goes on with after a restart may still do it.
func ExampleTokenFile_Find() {
	tokens, done := newTokens()
	defer done()
	added, _, err := tokens.Add(auth.Token{Name: "ann", Role: auth.Operator})
	if err != nil {
		log.Fatal(err)
	}
	who, err := tokens.Find(added.ID)
	fmt.Println(who.Name, who.Role, err)
	if err := tokens.Revoke(added.ID); err != nil {
		log.Fatal(err)
	}
	_, err = tokens.Find(added.ID)
	fmt.Println(err)
	// Output:
	// ann operator <nil>
	// auth: bad credentials: the token is revoked or expired
}

// The principal of the socket is known by its ID without a request.
func ExampleFindPeer() {
	who, _ := auth.Peer(httptest.NewRequest("GET", "http://localhost/v1/jobs", nil))
	again, ok := auth.FindPeer(who.ID)
	_, other := auth.FindPeer("k3j5n2x7qz4abcde")
	fmt.Println(again.Role, ok, other)
	// Output: admin true false
}

// An Authenticator of your own, for example one for a proxy that has checked the user.
func ExampleAuthenticator() {
	var a auth.Authenticator = behindProxy{}
	r := httptest.NewRequest("GET", "/v1/jobs", nil)
	r.Header.Set("X-User", "ann")
	who, err := a.Authenticate(r)
	fmt.Println(who.Name, who.Role, who.Sees("acme/1"), who.Sees("other/1"), err)
	// Output: ann viewer true false <nil>
}

type behindProxy struct{}

func (behindProxy) Authenticate(r *http.Request) (auth.Principal, error) {
	user := r.Header.Get("X-User")
	if user == "" {
		return auth.Principal{}, auth.ErrNoCredentials
	}
	return auth.Principal{ID: "user/" + user, Name: user, Role: auth.Viewer, Prefix: "acme/"}, nil
}

func ExampleParseRole() {
	role, err := auth.ParseRole("operator")
	fmt.Println(role, role > auth.Viewer, err)
	_, err = auth.ParseRole("root")
	fmt.Println(err)
	// Output:
	// operator true <nil>
	// auth: no role "root": use one of none, viewer, reader, operator, admin
}

// A program keeps a book of the changes of its tokens.
func ExampleTokenFile_OnChange() {
	tokens, done := newTokens()
	defer done()
	tokens.OnChange(func(c auth.Change) { fmt.Println(len(c.Added), len(c.Edited), len(c.Revoked)) })
	added, _, err := tokens.Add(auth.Token{Name: "worker"})
	if err != nil {
		log.Fatal(err)
	}
	if err := tokens.Revoke(added.ID); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 0 0
	// 0 0 1
}
