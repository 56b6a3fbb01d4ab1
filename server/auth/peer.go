package auth

import (
	"fmt"
	"net/http"
	"os"
	"os/user"
	"sync"
)

// Peer returns the principal of a process that has sent a request over a Unix socket and is of the
// same user as this process: an Admin who may call everything. The caller has checked the user. It
// returns false for a request with a token or a cookie, or with a header of a proxy such as
// X-Forwarded-For: that is of a client with credentials of its own. Any goroutine may call it.
func Peer(r *http.Request) (Principal, bool) {
	if len(r.Header.Values("Authorization")) > 0 || len(r.Header.Values("Cookie")) > 0 || passedOn(r) != "" {
		return Principal{}, false
	}
	return own(), true
}

// FindPeer returns the principal that Peer gives, if it has the ID. Any goroutine may call it.
func FindPeer(id string) (Principal, bool) {
	if own().ID != id {
		return Principal{}, false
	}
	return own(), true
}

// own is the principal of this user. Its ID is none of a token, because those have no colon.
var own = sync.OnceValue(func() Principal {
	uid := os.Geteuid()
	p := Principal{ID: fmt.Sprintf("user:%d", uid), Name: fmt.Sprintf("user %d", uid), Role: Admin, every: true}
	if u, err := user.LookupId(fmt.Sprint(uid)); err == nil {
		p.Name = u.Username
	}
	return p
})
