package transfer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/admin/transfer"
	"github.com/holdfast-dev/holdfast/object"
)

// resealed is a file that was changed, with the SHA-256 that it has now.
func resealed(file string) string {
	body := withoutSum(file)
	return body + fmt.Sprintf("{\"sha256\":\"%x\"}\n", sha256.Sum256([]byte(body)))
}

// Proves O28: a file that no export has written is refused with the number of the line, and
// nothing is stored.
func TestImportRefuses(t *testing.T) {
	_, _, file := filled(t, far)
	lines := strings.SplitAfter(file, "\n") // header, alarm, execution, two events, four keys, three marks, sum; the key total is the third
	swapped := func(i, j int) string {
		l := append([]string{}, lines...)
		l[i], l[j] = l[j], l[i]
		return resealed(strings.Join(l, ""))
	}
	changed := func(old, now string) string {
		if !strings.Contains(file, old) {
			t.Fatalf("%s is not in %s", old, file)
		}
		return resealed(strings.Replace(file, old, now, 1))
	}
	early := func(line int, field string) string {
		l := append([]string{}, lines...)
		l[line] = regexp.MustCompile(`"`+field+`":"\d{4}`).ReplaceAllString(l[line], `"`+field+`":"1960`)
		return resealed(strings.Join(l, ""))
	}
	lettered := func(data string) string { // with two letters behind the execution, the second of this data
		letter := func(seq int, data string) string {
			const at = "2026-01-01T00:00:00Z"
			return fmt.Sprintf(`{"letter":{"seq":%d,"scheduled":"%s","died":"%s","attempts":1,"crashes":0,"lastError":"","reason":"exhausted",%s}}`+"\n", seq, at, at, data)
		}
		l := slices.Insert(append([]string{}, lines...), 3, letter(7, `"data":"x"`), letter(8, data))
		return resealed(strings.Replace(strings.Join(l, ""), `"letters":0`, `"letters":2`, 1))
	}
	for _, c := range []struct {
		name, file, says string
		is               error
	}{
		{"empty", "", "line 1", transfer.ErrFile},
		{"no JSON", "hello\n", "line 1", transfer.ErrFile},
		{"another byte", strings.Replace(file, `"499"`, `"498"`, 1), "line 13: the bytes before it have another SHA-256", transfer.ErrFile},
		{"a line is missing", resealed(strings.Replace(file, lines[6], "", 1)), "line 12: there are other lines", transfer.ErrFile},
		{"the end is missing", withoutSum(file), "line 13", transfer.ErrFile},
		{"half a line", file[:len(file)-2], "line 13", transfer.ErrFile},
		{"more behind the end", file + "\n", "line 14", transfer.ErrFile},
		{"two headers", resealed(lines[0] + file), "line 2", transfer.ErrFile},
		{"keys in another order", swapped(6, 7), "line 8: the keys are not in their order", transfer.ErrFile},
		{"kinds in another order", swapped(1, 2), "line 3: the lines are not in their order", transfer.ErrFile},
		{"another format", changed(`"format":1`, `"format":2`), "line 1: its format is 2", transfer.ErrFile},
		{"a field that is unknown", changed(`"format":1`, `"format":1,"more":1`), "line 1", transfer.ErrFile},
		{"a field in another case", changed(`"format":1`, `"Format":1`), "line 1", transfer.ErrFile},
		{"a line of two kinds", changed(`{"key":"total"`, `{"key":"total","mark":"u/x"`), "line 8", transfer.ErrFile},
		{"an empty name", changed(`"name":"bob"`, `"name":""`), "line 1: ", object.ErrBadName},
		{"a long name", changed(`"name":"bob"`, `"name":"`+strings.Repeat("b", 1025)+`"`), "line 1: ", object.ErrBadName},
		{"a class with a slash", changed(`"class":"cart"`, `"class":"../cart"`), "line 1: ", object.ErrBadName},
		{"an object of the library", changed(`"class":"cart"`, `"class":"holdfast.audit"`), "line 1: ", transfer.ErrNotCarried},
		{"a label with NUL", changed(`"label":"busy"`, `"label":"a\u0000"`), "line 1: label holds NUL", nil},
		{"another codec", changed(`"codec":"json"`, `"codec":"main.Gob"`), "line 1: its values are of the codec", nil},
		{"a key that is too long", changed(`{"key":"total"`, `{"key":"total`+strings.Repeat("x", 2044)+`"`), "line 8: ", object.ErrKeyTooLarge},
		{"a value that is too large", changed(`"value":"499"`, `"value":"`+strings.Repeat("x", 2<<20+1)+`"`), "line 8: ", object.ErrValueTooLarge},
		{"a mark of no kind", changed(`{"mark":"u/seen"`, `{"mark":"x/seen"`), "line 12: the mark", nil},
		{"a partition", changed(lines[6], `{"key":"c","value":{"base64":"AQAACwMAAAADAAMAAwEAAgABAAA="}}`+"\n"), "line 7: ", transfer.ErrNotCarried},
		{"a time before 1970", changed(alarmOf(file), `{"alarm":{"due":"1960-01-01T00:00:00Z","scheduled":"1960-01-01T00:00:00Z"}}`), "line 2: ", object.ErrBadAlarmTime},
		{"a time after 2262", changed(alarmOf(file), `{"alarm":{"due":"2300-01-01T00:00:00Z","scheduled":"2026-01-01T00:00:00Z"}}`), "line 2: ", object.ErrBadAlarmTime},
		{"an execution before 1970", early(2, "since"), "line 3: ", object.ErrBadTime},
		{"an event before 1970", early(4, "at"), "line 5: ", object.ErrBadTime},
		{"an event that is too large", changed(`"data":"2"`, `"data":"`+strings.Repeat("x", 2<<20+1)+`"`), "line 5: ", object.ErrValueTooLarge},
		{"a letter that is too large", lettered(`"data":"` + strings.Repeat("x", object.MaxDeadData-1) + `"`), "line 5: ", object.ErrValueTooLarge},
		{"nothing that exists", resealed("{\"object\":{\"format\":1,\"class\":\"cart\",\"name\":\"bob\",\"counts\":{\"alarms\":0,\"executions\":0,\"letters\":0,\"events\":0,\"keys\":0,\"marks\":0}}}\n\n"), "does not exist", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newShop().open(t, object.Options{})
			err := imported(h, c.file, transfer.ImportOptions{Alarms: true})
			if err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v, and not %q and %v", err, c.says, c.is)
			}
			if classes, err := h.StoredClasses(context.Background()); err != nil || len(classes) > 0 {
				t.Errorf("stored %v, %v", classes, err)
			}
		})
	}
}

// Proves O28: the largest key and value of the host are imported, and so is each bound.
func TestImportAtTheBounds(t *testing.T) {
	s := newShop()
	from, into := s.open(t, object.Options{}), newShop().open(t, object.Options{})
	rows := map[string][]byte{strings.Repeat("k", 2<<10): bytes.Repeat([]byte{0xff}, 2<<20)}
	if _, err := s.put.Call(context.Background(), from, "bob", rows); err != nil {
		t.Fatal(err)
	}
	if err := imported(into, exported(t, from, bob), transfer.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
}

// changing is a file that is another one from a given reading on.
type changing struct {
	*strings.Reader
	now  string
	left int // readings before it changes
}

func (c *changing) Seek(at int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		if c.left--; c.left < 0 {
			c.Reader = strings.NewReader(c.now)
		}
	}
	return c.Reader.Seek(at, whence)
}

// Proves O28: a file that changes while it is read is refused, and of the portions that were
// stored already nothing is left.
func TestImportOfAFileThatChanges(t *testing.T) {
	s, from, _ := filled(t, far)
	for i := range 4 {
		if _, err := s.put.Call(context.Background(), from, "bob", map[string][]byte{fmt.Sprint(i): bytes.Repeat([]byte("v"), 300)}); err != nil {
			t.Fatal(err)
		}
	}
	file := exported(t, from, bob)
	now := resealed(strings.Replace(file, `"499"`, `"498"`, 1))
	for _, replace := range []bool{false, true} {
		for left := 1; left < 3; left++ {
			h := newShop().open(t, object.Options{MaxBatchBytes: 1000})
			before := uint64(0)
			if replace {
				if err := imported(h, now, transfer.ImportOptions{}); err != nil {
					t.Fatal(err)
				}
				before = numberOf(t, h)
			}
			_, err := transfer.Import(context.Background(), h, &changing{strings.NewReader(file), now, left}, transfer.ImportOptions{Replace: replace})
			if !errors.Is(err, transfer.ErrFile) {
				t.Errorf("%v", err)
			}
			if n := numberOf(t, h); n != before {
				t.Errorf("number %d, was %d", n, before)
			}
			if err := h.Store().Metas("unfinished/", func(name string, _ []byte) error { return errors.New(name) }); err != nil {
				t.Error(err)
			}
		}
	}
}

// numberOf is the number of the object bob; 0 if it does not exist.
func numberOf(t *testing.T, h *object.Host) uint64 {
	o, err := h.Store().Find(bob)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(o.Number)
}

// FuzzImport reads files that are changed at will, with the sum of their bytes or with another: no
// file panics, and one that is taken leaves a store without a contradiction, from which the
// object comes again.
func FuzzImport(f *testing.F) {
	_, _, file := filled(f, far)
	f.Add(file, false)
	f.Add(resealed(strings.Replace(file, `"499"`, `"498"`, 1)), true)
	for _, line := range strings.SplitAfter(file, "\n") {
		f.Add(line, true)
	}
	f.Fuzz(func(t *testing.T, file string, reseal bool) {
		if reseal && strings.HasSuffix(file, "\n") {
			file = resealed(file)
		}
		h := newShop().open(t, object.Options{}) // which checks the store at the end
		id, err := transfer.Import(context.Background(), h, strings.NewReader(file), transfer.ImportOptions{LeaveMessages: true})
		if err == nil {
			exported(t, h, id)
		}
	})
}
