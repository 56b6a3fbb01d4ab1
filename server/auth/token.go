package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Token is a row of the file of tokens, without the token itself.
type Token struct {
	// ID is given by Add. It is the ID of the Principal, and part of the token.
	ID string `json:"id"`
	// Name tells people the owner of the token. It has 1 to 200 bytes.
	Name string `json:"name"`
	Role Role   `json:"role"`
	// Prefix limits the role, as that of a Principal does. It does not limit the Grants.
	Prefix  string    `json:"prefix,omitempty"`
	Grants  []Grant   `json:"grants,omitempty"`
	Created time.Time `json:"created"` // given by Add
	// Expires is the first time at which the token is refused. Zero: it does not expire.
	Expires time.Time `json:"expires,omitzero"`
	// LastUse is when the token was last accepted. In the file it is up to a minute late. Zero: never.
	LastUse time.Time `json:"lastUse,omitzero"`
}

// principal is the Principal of the requests that bring the token.
func (t *Token) principal() Principal {
	return Principal{ID: t.ID, Name: t.Name, Role: t.Role, Prefix: t.Prefix, Grants: t.Grants}
}

// expired reports whether the token is refused at a time.
func (t *Token) expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

const maxNameBytes = 200

// check reports why a token cannot be one, and names it.
func (t *Token) check(separator string) error {
	if problem := t.problem(separator); problem != "" {
		return fmt.Errorf("token %s (%q): %s", t.ID, t.Name, problem)
	}
	return nil
}

func (t *Token) problem(separator string) string {
	switch {
	case !tokenID.MatchString(t.ID):
		return "the id is not one that was given by: token add"
	case t.Name == "" || len(t.Name) > maxNameBytes || !utf8.ValidString(t.Name) || strings.ContainsFunc(t.Name, unicode.IsControl):
		return fmt.Sprintf("the name must have 1 to %d bytes of text without control characters", maxNameBytes)
	case int(t.Role) >= len(roleNames):
		return fmt.Sprintf("there is no %v", t.Role)
	case t.Created.IsZero():
		return "the time of its creation is missing"
	case unended(t.Prefix, separator):
		return fmt.Sprintf("the prefix %q does not end in %q, so it would cover names of others", t.Prefix, separator)
	}
	for _, g := range t.Grants {
		switch {
		case g.Class == "" || strings.ContainsAny(g.Class, "\x00/"):
			return fmt.Sprintf("a grant is for class %q: a class has a name without NUL and slash", g.Class)
		case slices.Contains(g.Names, ""):
			return fmt.Sprintf("the grant for class %s has an empty name", g.Class)
		case unended(g.Prefix, separator):
			return fmt.Sprintf("the prefix %q of the grant for class %s does not end in %q, so it would cover names of others", g.Prefix, g.Class, separator)
		}
	}
	return ""
}

// unended reports whether a prefix lacks its separator: acme without it also covers acme2.
func unended(prefix, separator string) bool {
	return prefix != "" && !strings.HasSuffix(prefix, separator)
}

// A token is written as holdfast_ID_SECRET: programs that look for secrets in code know it by
// its beginning, and the server finds its row by the ID, so that it compares one hash alone.
const (
	tokenPrefix = "holdfast_"
	secretBytes = 32
	idBytes     = 10
)

var (
	tokenID   = regexp.MustCompile(`^[a-z2-7]{16}$`) // idBytes in base 32
	tokenText = regexp.MustCompile(tokenPrefix + `[a-z2-7]{16}_[^\s"]*`)
	lower     = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
)

// draw returns the ID of a new token and its text.
func draw(random io.Reader) (id, text string, err error) {
	var b [idBytes + secretBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", "", fmt.Errorf("draw a token: %w", err)
	}
	id = lower.EncodeToString(b[:idBytes])
	return id, tokenPrefix + id + "_" + hex.EncodeToString(b[idBytes:]), nil
}

// idOf is the ID in the text of a token; empty if it is none.
func idOf(text string) string {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	id, secret, also := strings.Cut(rest, "_")
	if !ok || !also || len(secret) != 2*secretBytes {
		return ""
	}
	return id
}

// hash is the SHA-256 of the text of a token, in hexadecimal in JSON.
type hash [sha256.Size]byte

func hashOf(text string) hash { return sha256.Sum256([]byte(text)) }

// equal compares in constant time.
func (h *hash) equal(other *hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

// MarshalText returns the hash in hexadecimal.
func (h hash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h[:])), nil }

// UnmarshalText takes a hash in hexadecimal. Its error does not repeat the text.
func (h *hash) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(h[:], text[:min(len(text), 2*len(h))]); err != nil || n != len(h) || len(text) != 2*len(h) {
		return errors.New("a sha256 has 64 hexadecimal digits")
	}
	return nil
}

// redacted is an error without the texts of tokens, which stand in the error of a decoder if
// someone has written one into a wrong place of the file. It is one line.
func redacted(err error) string {
	return strings.ReplaceAll(tokenText.ReplaceAllString(err.Error(), tokenPrefix+"..."), "\n", "; ")
}
