package why_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/admin/why"
)

// The table in docs/OPERATIONS.md is that of Codes. If the test fails, copy what it prints.
func TestDocumentedCodes(t *testing.T) {
	text, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, c := range why.Codes() {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", c.Code, c.Means, strings.Join(c.Do, "; "))
	}
	if !strings.Contains(string(text), "\n"+table.String()+"\n") {
		t.Errorf("docs/OPERATIONS.md lacks the table\n%s", table.String())
	}
}
