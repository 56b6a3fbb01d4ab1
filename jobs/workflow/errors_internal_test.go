package workflow

import "testing"

// A size is told in the unit that a person would choose, and in bytes if it is hardly over the limit.
func TestTextsOfSizes(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	for _, c := range []struct {
		n, limit int
		want     string
	}{
		{5 * mib, 2 * mib, "5 MiB, the limit is 2 MiB"},
		{2*mib + 1, 2 * mib, "2097153 bytes, the limit is 2097152 bytes"},
		{11*kib - 1, 10 * kib, "11263 bytes, the limit is 10240 bytes"},
		{11 * kib, 10 * kib, "11 KiB, the limit is 10 KiB"},
		{3 * mib / 2, 3 * kib, "1.5 MiB, the limit is 3 KiB"},
		{kib, kib - 200, "1 KiB, the limit is 824 bytes"},
		{mib, kib - 1, "1 MiB, the limit is 1023 bytes"},
		{mib - 1, kib, "1024 KiB, the limit is 1 KiB"},
	} {
		if got := overLimit(c.n, c.limit); got != c.want {
			t.Errorf("%d of %d: %s, want %s", c.n, c.limit, got, c.want)
		}
	}
}
