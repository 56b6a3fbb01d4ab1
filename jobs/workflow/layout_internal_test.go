package workflow

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/internal/history"
)

// The arguments of the methods that messages name are stored format. FORMAT.md shows them.
func TestArgumentsInMessages(t *testing.T) {
	document, err := os.ReadFile("../../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	type parcel struct {
		To    string
		Grams int
	}
	of := parent{"trip", "7", "1-5", 0, 3}
	for method, argument := range map[string]any{
		"pause":       pauseArg{"why", time.Unix(1e9, 0).UTC()},
		"start child": childStart[parcel]{parcel{"anna", 250}, of},
		methodCancel:  childCancel{of, "why"},
		methodAnswer:  answer{of, history.Failed, "no", []byte("499")},
	} {
		raw, err := json.Marshal(argument)
		if err != nil {
			t.Fatal(err)
		}
		if row := "| workflow | `" + method + "`"; !strings.Contains(string(document), row) {
			t.Errorf("FORMAT.md has no row that begins with %s", row)
		}
		if cell := "| `" + string(raw) + "` |"; !strings.Contains(string(document), cell) {
			t.Errorf("FORMAT.md does not show the argument of %s\n%s", method, cell)
		}
	}
	raw, err := json.Marshal(child{"order", "7", &answer{Parent: of}, true})
	if want := `{"class":"order","name":"7","answer":{"parent":`; err != nil || !strings.HasPrefix(string(raw), want) {
		t.Errorf("the row of a child is %s, want it to begin with %s", raw, want)
	}
	if want := `}},"shielded":true}`; !strings.HasSuffix(string(raw), want) {
		t.Errorf("the row of a child is %s, want it to end with %s", raw, want)
	}
	if key, err := markKey(of); err != nil || !strings.Contains(string(document), hex.EncodeToString([]byte(key[len(markPrefix):]))) {
		t.Errorf("FORMAT.md does not show the key %x of a mark, %v", key, err)
	}
	if all := inputKey + outputKey + rowKey + historyPrefix + generationPrefix + signalPrefix + varPrefix + childPrefix + markPrefix + dataPrefix; all != "inoutrune/g/s/v/c/k/u/" {
		t.Errorf("the keys of a run are %s: FORMAT.md tells others", all)
	}
}
