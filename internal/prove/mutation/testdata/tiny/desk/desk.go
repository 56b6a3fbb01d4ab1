// Package desk uses package tiny, and its tests prove what those of tiny leave out.
package desk

import "example.com/tiny"

// Read takes the only book of a shelf, and says whether none is left.
func Read() (bool, error) {
	var s tiny.Shelf
	if err := s.Put(1, 0); err != nil {
		return false, err
	}
	s.Unread()
	return s.Empty(), nil
}
