package engine_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }
