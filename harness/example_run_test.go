package harness_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// session is an object that ends itself when it was not used for a day.
type session struct{ st *object.State }

// touch says that the session is used.
func (x *session) touch(ctx context.Context, user string) (bool, error) {
	if err := x.st.Storage().Put(ctx, "user", user); err != nil {
		return false, err
	}
	return true, x.st.SetAlarm(ctx, x.st.Now().Add(24*time.Hour))
}

// Alarm ends the session.
func (x *session) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	return x.st.Storage().DeleteAll(ctx)
}

var (
	sessions = object.Define("session", func(_ context.Context, st *object.State) (*session, error) { return &session{st}, nil })
	touch    = object.Handle(sessions, "touch", (*session).touch)
)

// testSessionEnds is the test: give it a name that begins with Test. Two days go by in
// virtual time, which takes no time.
func testSessionEnds(t testing.TB) {
	harness.Run(t, func(s *harness.Sim) {
		s.Host(sessions)
		s.Must(touch.Call(s.Context(), s, "s-1", "alice"))
		s.Advance(23 * time.Hour)
		s.Must(touch.Call(s.Context(), s, "s-1", "alice"))
		for _, c := range []struct {
			wait time.Duration
			here bool
		}{{24*time.Hour - time.Second, true}, {2 * time.Second, false}} {
			s.Advance(c.wait)
			var user string
			here, err := harness.Stored(s.Store(), sessions.ID("s-1"), "user", &user)
			s.OK(err)
			s.Always("it ends a day after its last use", here == c.here, s.Now(), user)
		}
	})
}

// quiet stands for the t of a test.
type quiet struct{ testing.TB }

func (quiet) Helper()                        {}
func (quiet) Fatalf(format string, a ...any) { fmt.Printf("FAIL: "+format+"\n", a...) }

// Run is called from a test.
func ExampleRun() {
	testSessionEnds(quiet{})
	fmt.Println("ok")
	// Output: ok
}
