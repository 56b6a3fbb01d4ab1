// Package fail ends the setup of a measurement with its first error, so that the
// functions that open hosts, stores and references return only these.
//
//	func prepare() (err error) {
//		defer fail.Caught(&err)
//		pool := fail.Must(workload.OpenPool(dir, kept))
//		fail.On(pool.Queue(ctx, 1000))
//
// On and Must panic, so only the goroutine that runs Caught may call them.
package fail

type failed struct{ error }

// On fails with err unless it is nil.
func On(err error) {
	if err != nil {
		panic(failed{err})
	}
}

// Must returns v, or fails with err.
func Must[T any](v T, err error) T {
	On(err)
	return v
}

// Caught stores the error of On or Must. Call it with defer.
func Caught(err *error) {
	switch p := recover().(type) {
	case nil:
	case failed:
		*err = p.error
	default:
		panic(p)
	}
}
