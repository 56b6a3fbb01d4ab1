// Package auth names the principal of a request and its rights.
//
// An Authenticator turns the credentials of a request into a Principal. The server asks the
// Principal before it reads anything. Tokens is the Authenticator of production:
//
//	tokens, err := auth.Tokens("tokens.json", auth.Options{}) // made by: holdfast token add
//	srv, err := server.New(host, server.Config{Auth: tokens})
//
// # Tokens
//
// A token has 256 random bits. Add returns it once; the file has its SHA-256. A request
// brings it in the header "Authorization: Bearer ...". A token is never taken from a URL, because
// URLs stand in logs and histories.
//
//   - A token that was revoked, was taken out of the file or has expired is refused. A change of
//     the file is seen within 5 s.
//   - A file that cannot be read, for example because an editor has written half of it, changes
//     nothing: the tokens that were read last stay valid, and the log has one line. A file that is
//     removed revokes all.
//   - The file of tokens must be readable and writable by its owner alone.
//   - Processes that change the file at the same time lose no change, because each reads and
//     writes it under a lock.
//
// The file is JSON:
//
//	{"version": 1, "tokens": [{
//	  "id": "k3j5n2x7qz4abcde", "name": "worker of acme", "role": "none",
//	  "grants": [{"class": "cart", "prefix": "acme/", "names": ["add"]}],
//	  "created": "2026-11-23T08:00:00Z", "expires": "2027-02-21T08:00:00Z", "sha256": "9f86..."
//	}]}
//
// # Sessions
//
// SignIn gives a browser a cookie in exchange for a token. The cookie is sealed with AES-GCM
// under a key that each process draws for itself, so that no file holds the key, and a restart ends
// all sessions. A session ends after 8 hours, and earlier with its token.
//
// # Tries
//
// An address, or a network of 64 bits with IPv6, has 5 wrong tries a minute in the sign-in form,
// and 5 wrong bearer tokens. Further ones get a TooManyTriesError. A right token is always
// taken, also by the form, because the clients behind one proxy share its address, and one of them
// could otherwise shut out the others; 256 bits are not guessed at any rate.
//
// No token and no cookie stands in an error or in a line of the log.
package auth

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Role is the right to read and to operate. Each role includes the ones before it.
type Role uint8

const (
	// None reads nothing and operates nothing. A program that only calls has it, with Grants.
	None Role = iota
	// Viewer reads names, counts and statuses: neither values nor the errors of handlers.
	Viewer
	// Reader reads values and the errors of handlers too.
	Reader
	// Operator uses the verbs that keep jobs in order, for example pause and retry.
	Operator
	// Admin deletes.
	Admin
)

var roleNames = []string{"none", "viewer", "reader", "operator", "admin"}

// String returns the name of the role, for example "viewer".
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("role %d", r)
}

// ParseRole returns the role with a name: none, viewer, reader, operator or admin.
func ParseRole(name string) (Role, error) {
	i := slices.Index(roleNames, name)
	if i < 0 {
		return None, fmt.Errorf("auth: no role %q: use one of %s", name, strings.Join(roleNames, ", "))
	}
	return Role(i), nil
}

// MarshalText returns the name of the role.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText takes the name of a role.
func (r *Role) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRole(string(text))
	return err
}

// Grant lets a principal call. It gives nothing to read but the answers of the calls, and the
// text of their errors.
type Grant struct {
	// Class is the class of the objects, or the name of the job type or the pool.
	Class string `json:"class"`
	// Prefix is how the names of the objects, or the ids of the jobs, must begin; empty: all.
	// One that is not empty ends in a separator that the server's Config names.
	Prefix string `json:"prefix,omitempty"`
	// Names are the methods and verbs; empty: all that the server exposes.
	Names []string `json:"names,omitempty"`
}

// Principal is the person or the program that makes a request.
type Principal struct {
	ID   string // does not change, for example that of a token; keys of calls are kept under it
	Name string // for people
	Role Role
	// Prefix limits what the role sees and operates to the objects and jobs with names that
	// begin with it: all else looks as if it did not exist. Empty: no limit.
	Prefix string
	Grants []Grant

	every bool // may call everything that the server exposes: Insecure
}

// Sees reports whether the role of the principal covers the object, or the job, with a name.
func (p Principal) Sees(name string) bool { return strings.HasPrefix(name, p.Prefix) }

// MayCall reports whether a grant covers a method, or a verb, of the object, or the job, with a
// name. The principal of Insecure may call everything.
func (p Principal) MayCall(class, name, method string) bool {
	return p.every || slices.ContainsFunc(p.Grants, func(g Grant) bool {
		return g.Class == class && strings.HasPrefix(name, g.Prefix) && (len(g.Names) == 0 || slices.Contains(g.Names, method))
	})
}

// HasGrant reports whether the principal has any grant for a class, so that it may know that the
// class is there.
func (p Principal) HasGrant(class string) bool {
	return p.every || slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.Class == class })
}

// An Authenticator finds the Principal of a request. It is called by many goroutines at a time.
type Authenticator interface {
	// Authenticate returns the principal of the request, from its headers and cookies alone: it
	// reads no body. It returns an error that matches ErrNoCredentials if the request has none, an
	// error that matches ErrBadCredentials if they are wrong, revoked or too old, and a
	// *TooManyTriesError, which matches ErrBadCredentials too, if it was not told which.
	Authenticate(r *http.Request) (Principal, error)
}

// A Finder is an Authenticator that knows the rights of a principal without a request. A server asks it, after a restart of
// the program, whether the principal of a verb over many may still do it; such a verb ends without a Finder. It is called by
// many goroutines at a time.
type Finder interface {
	Authenticator
	// Find returns the principal with an ID as Authenticate would now. It returns an error that matches ErrBadCredentials
	// if there is none, for example because its token was revoked or has expired.
	Find(id string) (Principal, error)
}

var (
	// ErrNoCredentials says that a request has no credentials.
	ErrNoCredentials = errors.New("auth: no credentials")
	// ErrBadCredentials says that the credentials of a request are wrong, revoked or too old.
	ErrBadCredentials = errors.New("auth: bad credentials")
)
