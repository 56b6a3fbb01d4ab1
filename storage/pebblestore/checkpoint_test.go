package pebblestore

import "testing"

// A log that was copied while it was written has old bytes before new ones. The copy ends before them,
// and opens with all records up to there.
//
// Proves S15.
func TestCopyOfALogIsCut(t *testing.T) {
	fsys, path := killed(t, 20, 1<<10)
	whole := readTail(t, fsys, path)
	damaged := damagedLog(t, fsys, path, int(whole.end)/2)
	if _, err := reopened(t, damaged); err == nil {
		t.Fatal("the log opens as it is")
	}
	damaged = damagedLog(t, fsys, path, int(whole.end)/2)
	if err := finishCopy(Dir{damaged, "db"}, func(int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if log, err := readFile(damaged, path); err != nil || len(log) > int(whole.end)/2 || len(log) < int(whole.end)/3 {
		t.Errorf("the log of the copy has %d bytes, and differs at byte %d, %v", len(log), whole.end/2, err)
	}
	if files, texts, err := inspected(t, damaged); err != nil || len(files) > 0 {
		t.Errorf("findings in the copy: %v %q, %v", files, texts, err)
	}
	if last, err := reopened(t, damaged); err != nil || last < 7 || last > 11 {
		t.Errorf("the copy ends with batch %d, %v", last, err)
	}
}
