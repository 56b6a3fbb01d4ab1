package crashes

import "github.com/holdfast-dev/holdfast/storage"

// UnderWay counts the messages that a store holds for objects of a class.
func UnderWay(store *storage.Store, class string) (n int, err error) {
	c, err := store.CountMessages()
	if err != nil {
		return 0, err
	}
	for more := true; more && err == nil; {
		more, err = c.Next(func(to storage.ID, k int) bool {
			if to.Class == class {
				n += k
			}
			return true
		})
	}
	if closeErr := c.Close(); err == nil {
		err = closeErr
	}
	return n, err
}
