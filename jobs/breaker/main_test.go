package breaker_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
	_ "github.com/holdfast-dev/holdfast/internal/testing/seeds" // the tests draw the same inputs in each run
)

func TestMain(m *testing.M) { leaks.Main(m) }
