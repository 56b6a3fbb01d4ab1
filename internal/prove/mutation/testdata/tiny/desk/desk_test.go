package desk

import "testing"

func TestRead(t *testing.T) {
	if empty, err := Read(); err != nil || !empty {
		t.Fatalf("a shelf whose only book is read: empty %t, %v", empty, err)
	}
}

func TestNothing(*testing.T) {}
