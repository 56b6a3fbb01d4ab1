package storage

import "testing"

// The keys that have the class and name of an object name it, and the others name none, whatever bytes they have.
func TestNamedBy(t *testing.T) {
	id := ID{Class: "cart", Name: "anna/\n"}
	for name, key := range map[string][]byte{
		"header": headerKey(nil, 3, id), "event": namedKey(nil, 3, kindEvent, id, 7), "dead letter": namedKey(nil, 3, kindDead, id, 7),
	} {
		if got, ok := NamedBy(key); !ok || got != id {
			t.Errorf("the key of a %s names %v, %v", name, got, ok)
		}
		if got, ok := NamedBy(key[:4]); ok {
			t.Errorf("the begin of the key of a %s names %v", name, got)
		}
	}
	for name, key := range map[string][]byte{
		"nothing": nil, "row": rowKey(nil, 3, 9, subData), "alarm": indexKey(nil, 3, 9, 9), "open mark": openKey(nil, 3, 9), "row of the store": metaKey("epoch"),
	} {
		if got, ok := NamedBy(key); ok {
			t.Errorf("the key of a %s names %v", name, got)
		}
	}
}
