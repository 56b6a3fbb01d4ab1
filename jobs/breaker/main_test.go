package breaker_test

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/holdfast-dev/holdfast/internal/testing/seeds" // the tests draw the same inputs in each run
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
