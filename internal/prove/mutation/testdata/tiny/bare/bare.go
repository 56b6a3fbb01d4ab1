// Package bare has no tests.
package bare

import "fmt"

// Half returns half of an even number. The values beside an error stay as they are.
func Half(n func() (int, error)) (half int, ok bool, err error) {
	all, err := n()
	if err != nil {
		return 0, false, fmt.Errorf("no half: %w", err)
	}
	if other := err; err != nil {
		return 1, false, other
	}
	if all%2 != 0 {
		return 2, false, nil
	}
	return all / 2, true, err
}

// Rooms has the length that was asked for, and room for more.
func Rooms(n int) []int { return append(make([]int, 1, n+2)[:1], 3) }
