//go:build unix && !solaris && !aix

package auth

import (
	"os"
	"syscall"
	"testing"
)

// A process trusts its own files and those of root, and root trusts those of a server.
func TestForeign(t *testing.T) {
	for _, c := range []struct {
		owner, me int
		want      bool
	}{{1000, 1000, false}, {0, 1000, false}, {1001, 1000, true}, {1000, 0, false}, {0, 0, false}} {
		if got := foreign(c.owner, c.me); got != c.want {
			t.Errorf("a file of %d is foreign to %d: %v", c.owner, c.me, got)
		}
	}
}

// A change leaves the owner of the file as it is, also if root makes it.
func TestOwnerStays(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.add(Token{Name: "ci", Role: Viewer})
		owner := os.Geteuid()
		if owner == 0 {
			owner = 65534
		}
		if err := os.Chown(f.path, owner, -1); err != nil {
			t.Fatal(err)
		}
		f.add(Token{Name: "b", Role: Viewer})
		info, err := os.Stat(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := int(info.Sys().(*syscall.Stat_t).Uid); got != owner {
			t.Errorf("the file belongs to %d, want %d", got, owner)
		}
	})
}
