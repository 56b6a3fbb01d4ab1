package telemetry_test

import (
	"os"
	"testing"

	"github.com/holdfast-dev/holdfast/server/internal/patience"
)

func TestMain(m *testing.M) {
	patience.Have()
	os.Exit(m.Run())
}
