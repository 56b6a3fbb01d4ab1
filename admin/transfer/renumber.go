package transfer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/jobs/engine"
)

// Rows of packages above objects that name a number of their store. Timers keep a dead timer
// under the number of its letter, a workflow the number of its letter in its row, and a job the
// epoch in the row of each open execution.
const (
	deadTimers  = "\x00t/x/"
	workflowRow = "run"
)

// renumber returns a key and its value with the numbers that they have in this store. job is the
// type of the job that they are of, empty for none.
func renumber(job, codec, key string, value []byte, letters map[uint64]uint64) (string, []byte, error) {
	switch {
	case job == "" && strings.HasPrefix(key, deadTimers) && len(key) == len(deadTimers)+8:
		seq := letters[binary.BigEndian.Uint64([]byte(key[len(deadTimers):]))]
		if seq == 0 {
			return "", nil, errors.New("a dead timer without its dead letter")
		}
		return string(binary.BigEndian.AppendUint64([]byte(deadTimers), seq)), value, nil
	case job != "" && strings.HasPrefix(key, engine.ExecutionPrefix):
		value, err := engine.CutOff(key, value)
		return key, value, err
	case job == "workflow" && key == workflowRow && len(letters) > 0:
		if codec != "json" {
			return "", nil, fmt.Errorf("a workflow with a dead letter is imported with the codec JSON alone, and the host has %s", codec)
		}
		value, err := renumberRun(value, letters)
		return key, value, err
	}
	return key, value, nil
}

// renumberRun replaces the number of the dead letter in the row of a workflow, and no other byte.
func renumberRun(value []byte, letters map[uint64]uint64) ([]byte, error) {
	var row struct {
		Letter json.RawMessage `json:"letter"`
	}
	if err := json.Unmarshal(value, &row); err != nil {
		return nil, fmt.Errorf("the row %q of a workflow: %w", workflowRow, err)
	}
	old, err := strconv.ParseUint(string(row.Letter), 10, 64)
	if len(row.Letter) == 0 || old == 0 && err == nil {
		return value, nil
	}
	field := append([]byte(`"letter":`), row.Letter...)
	seq := letters[old]
	if err != nil || seq == 0 || bytes.Count(value, field) != 1 {
		return nil, fmt.Errorf("the row %q of a workflow names the dead letter %s, which the file does not have", workflowRow, row.Letter)
	}
	return bytes.Replace(value, field, strconv.AppendUint([]byte(`"letter":`), seq, 10), 1), nil
}
