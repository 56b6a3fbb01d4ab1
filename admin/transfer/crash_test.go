package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/admin/transfer"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves O28: a crash at any point of an import in several commits leaves the whole object or
// nothing of it, and no row without a header, also of one that replaces another.
func TestCrashImportInPortions(t *testing.T) {
	shop, source, _ := filled(t, far)
	for i := range 4 { // each a portion by itself
		if _, err := shop.put.Call(context.Background(), source, "bob", map[string][]byte{fmt.Sprint(i): bytes.Repeat([]byte("v"), 300)}); err != nil {
			t.Fatal(err)
		}
	}
	file := exported(t, source, bob)
	crashes.Try(t, func(s *harness.Sim) {
		there := newShop()
		s.Host(there.carts)
		for _, replace := range []bool{false, true} {
			s.OK(s.Retry(func() error {
				return s.WithHost(func(ctx context.Context, h *object.Host) error {
					_, err := transfer.Import(ctx, h, strings.NewReader(file), transfer.ImportOptions{Replace: replace})
					if errors.Is(err, object.ErrExists) { // the answer of the first was lost
						return nil
					}
					return err
				})
			}))
			s.OK(s.Retry(func() error {
				return s.WithHost(func(ctx context.Context, h *object.Host) error {
					var b bytes.Buffer
					err := transfer.Export(ctx, h, bob, &b, transfer.ExportOptions{})
					if err == nil {
						s.Always("all keys and marks are there", rowsOf(b.String()) == rowsOf(file), b.String())
					}
					return err
				})
			}))
			store := s.Store()
			s.OK(store.Metas("unfinished/", func(name string, _ []byte) error { return fmt.Errorf("%s is left", name) }))
		}
	}, harness.HostOptions(func(o *object.Options) { o.MaxBatchBytes = 1000 }))
}

// rowsOf is the lines of keys and marks.
func rowsOf(file string) (rows string) {
	for _, line := range strings.SplitAfter(file, "\n") {
		if strings.HasPrefix(line, `{"key"`) || strings.HasPrefix(line, `{"mark"`) {
			rows += line
		}
	}
	return rows
}
