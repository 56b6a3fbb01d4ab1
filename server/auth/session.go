package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// sessionFor is how long a session lasts: a day of work.
const sessionFor = 8 * time.Hour

// Names of the cookie. A browser takes one that begins with __Host- over TLS alone, and from no
// other host, for example not from a subdomain.
const (
	secureCookie = "__Host-holdfast"
	plainCookie  = "holdfast"
)

// maxCookies bounds how many cookies of one name are tried. A browser sends several if another
// program on the host has set one for a path.
const maxCookies = 4

// SignIn gives a cookie for the text of a token, as the sign-in form sends it. secure says that
// the browser has come over TLS: then the cookie is called __Host-holdfast and is not sent
// otherwise, else it is called holdfast. SignIn returns an error that matches ErrBadCredentials if
// the token is wrong, revoked or expired, and a *TooManyTriesError if it is, and the address of the
// request has brought 5 wrong ones in the last minute.
func (f *TokenFile) SignIn(r *http.Request, text string, secure bool) (Principal, *http.Cookie, error) {
	k := f.find(strings.TrimSpace(text))
	if k == nil {
		return Principal{}, nil, f.wrong(&f.forms, r)
	}
	c := newCookie(secure)
	value, err := f.seal(c.Name, session{ends: f.o.Seams.Clock.Now().Add(sessionFor), sum: k.SHA256, id: k.ID})
	if err != nil {
		return Principal{}, nil, fmt.Errorf("auth: seal a session: %w", err)
	}
	c.Value, c.MaxAge = value, int(sessionFor/time.Second)
	return f.accept(k), c, nil
}

// SignOut gives the cookie that ends the session of a browser. A copy of the session's cookie
// stays valid until its time is over or its token is revoked.
func (f *TokenFile) SignOut(secure bool) *http.Cookie {
	c := newCookie(secure)
	c.MaxAge = -1
	return c
}

// newCookie is a cookie of a session without its value.
func newCookie(secure bool) *http.Cookie {
	c := &http.Cookie{Name: plainCookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if secure {
		c.Name, c.Secure = secureCookie, true
	}
	return c
}

// authenticateSession returns the principal of the session that a request brings.
func (f *TokenFile) authenticateSession(r *http.Request) (Principal, error) {
	none := true
	for _, name := range []string{secureCookie, plainCookie} {
		for i, c := range r.CookiesNamed(name) {
			if i == maxCookies || name == plainCookie && r.TLS != nil {
				break
			}
			none = false
			if k := f.sessionOf(name, c.Value); k != nil {
				return f.accept(k), nil
			}
		}
	}
	if none {
		return Principal{}, ErrNoCredentials
	}
	return Principal{}, fmt.Errorf("%w: the session is over: sign in again", ErrBadCredentials)
}

// sessionOf returns the token of a cookie's session, or nil if the session or its token is over.
func (f *TokenFile) sessionOf(name, value string) *known {
	s, err := f.unseal(name, value)
	now := f.o.Seams.Clock.Now()
	if err != nil || !now.Before(s.ends) {
		return nil
	}
	k := f.current().known[s.id]
	if k == nil || !k.SHA256.equal(&s.sum) || k.expired(now) {
		return nil
	}
	return k
}

// session is the content of a cookie: the time of its end, and the hash and the ID of its token. The
// hash ends the session if someone gives the ID another token.
type session struct {
	ends time.Time
	sum  hash
	id   string
}

// newSeal draws the key of the sessions of this process.
func newSeal(random io.Reader) (cipher.AEAD, error) {
	var key [32]byte
	if _, err := io.ReadFull(random, key[:]); err != nil {
		return nil, fmt.Errorf("auth: draw the key of sessions: %w", err)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, fmt.Errorf("auth: key of sessions: %w", err)
	}
	return cipher.NewGCM(block)
}

// A sealed session is base64 of
//
//	nonce 12 | sealed: ends 8 (seconds since 1970, big endian) | hash 32 | ID | tag 16
//
// The name of the cookie is sealed with it, so that a session of one name is none of the other.
const sealedMax = 256 // bytes of base64; longer values are refused unread

func (f *TokenFile) seal(name string, s session) (string, error) {
	nonce := make([]byte, f.aead.NonceSize())
	if _, err := io.ReadFull(f.random, nonce); err != nil {
		return "", err
	}
	plain := binary.BigEndian.AppendUint64(nil, uint64(s.ends.Unix()))
	plain = append(append(plain, s.sum[:]...), s.id...)
	return base64.RawURLEncoding.EncodeToString(f.aead.Seal(nonce, nonce, plain, []byte(name))), nil
}

var errSeal = errors.New("auth: the seal is broken")

func (f *TokenFile) unseal(name, value string) (session, error) {
	if len(value) > sealedMax || strings.ContainsAny(value, "\r\n") { // base64 passes over the ends of lines
		return session{}, errSeal
	}
	sealed, err := base64.RawURLEncoding.DecodeString(value)
	n := f.aead.NonceSize()
	if err != nil || len(sealed) < n {
		return session{}, errSeal
	}
	plain, err := f.aead.Open(nil, sealed[:n], sealed[n:], []byte(name))
	if err != nil || len(plain) < 8+len(hash{}) {
		return session{}, errSeal
	}
	s := session{ends: time.Unix(int64(binary.BigEndian.Uint64(plain)), 0), id: string(plain[8+len(hash{}):])}
	copy(s.sum[:], plain[8:])
	return s, nil
}
