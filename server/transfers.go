package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/admin/transfer"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// transferRoutes are the routes of one object as a file. A principal with a prefix has none of them, because the file names
// other objects too.
func (s *Server) transferRoutes() []route {
	params := []param{{name: "leaveMessages", kind: flag, help: "1: also while messages to the object wait, which the file does not have"}}
	byPath := route{method: "GET", pattern: "/v1/objects/{class}/{name}/export", access: admin, answer: raw{}, handle: (*exchange).export, params: params,
		help: "Write all that is stored of an object, as it is at one moment, as lines of JSON. The last line has the SHA-256 of those before it, so a part is not taken for the whole."}
	byQuery := byPath
	byQuery.pattern = "/v1/object/export"
	byQuery.params = append([]param{{name: "class", help: "of the object"}, {name: "name", help: "of the object"}}, params...)
	return []route{byPath, byQuery,
		{method: "POST", pattern: "/v1/import", access: admin, request: raw{}, answer: importedObject{}, handle: (*exchange).importFile,
			params: []param{
				{name: "replace", kind: flag, help: "1: in the place of the object that has the name"},
				{name: "alarms", kind: flag, help: "1: with the alarm of the file; without it the object has none"},
				{name: "leaveMessages", kind: flag, help: "1: also if messages to the object waited when the file was made"},
			},
			help: "Store the object of a file that an export has written, under the class and the name in it. It is stored whole or not at all. At most Config.MaxImportBytes."},
	}
}

// importedObject is the answer of an import.
type importedObject struct {
	Class string `json:"class"`
	Name  string `json:"name"`
}

// transferRules are the rules of the errors of exports and imports.
var transferRules = []rule{
	{is: transfer.ErrFile, problem: badFile, tell: true},
	{is: transfer.ErrMessages, problem: problem{Type: "messages-wait", Title: "Messages to the object wait.", Status: 409, Outcome: none}, tell: true},
	{is: transfer.ErrNotCarried, problem: problem{Type: "not-carried", Title: "The object cannot live in another store by itself.", Status: 409, Outcome: none}, tell: true},
	{is: object.ErrExists, problem: problem{Type: "exists", Title: "The object exists.", Status: 409, Outcome: none, Detail: "line 1 has its name: import with replace to put the one of the file in its place"}},
	{is: object.ErrNoObject, problem: *notFound()},
	{is: object.ErrKeyTooLarge, problem: tooLargeHere, tell: true},
	{is: object.ErrValueTooLarge, problem: tooLargeHere, tell: true},
	{is: object.ErrBatchTooLarge, problem: tooLargeHere, tell: true},
}

var (
	badFile      = problem{Type: "bad-file", Title: "The file is not that of an exported object.", Status: http.StatusBadRequest, Outcome: none}
	tooLargeHere = problem{Type: "too-large", Title: "The host stores nothing as large.", Status: http.StatusBadRequest, Outcome: none}
)

// transferProblem is the problem of an error of an export or an import. One that no rule knows tells of the object or the
// file, unless the rows of the store are damaged.
func transferProblem(err error) error {
	switch {
	case err == nil, ruled(err, rules, transferRules) != nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, storage.ErrCorrupt):
		return err
	}
	return &problem{Type: "refused", Title: "The object cannot be carried.", Status: http.StatusUnprocessableEntity, Detail: err.Error(), Outcome: none}
}

// maxTransfers bounds the exports and imports under way, because each has the events and dead letters of its object in
// memory, up to 128 MiB.
const maxTransfers = 2

// transfers are the exports and imports under way. The mutex guards n.
type transfers struct {
	mu sync.Mutex
	n  int
}

// enter counts an export or an import, or refuses it. The caller calls leave.
func (t *transfers) enter() (leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == maxTransfers {
		return nil, &problem{Type: "too-many-transfers", Title: "Too many exports and imports are under way.", Status: http.StatusTooManyRequests, Outcome: none, Retryable: true, retryAfter: 5}
	}
	t.n++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.n--
	}, nil
}

// export writes an object. An error after its first bytes cuts the connection.
func (x *exchange) export() error {
	id, err := x.plain()
	if err != nil {
		return err
	}
	leave, err := x.transfers.enter()
	if err != nil {
		return err
	}
	defer leave()
	x.w.Header().Set("Content-Type", linesType)
	return transferProblem(transfer.Export(x.r.Context(), x.host, id, &pacedAnswer{x: x}, transfer.ExportOptions{LeaveMessages: x.flag("leaveMessages")}))
}

// linesType is the media type of lines of JSON.
const linesType = "application/x-ndjson"

// pacedAnswer is an answer of a length that is not known before. The client takes it within answerTime, and
// bodyTimePerPart more for each bodyPart of it, so that it does not hold the rows of the store for as long as it likes.
type pacedAnswer struct {
	x     *exchange
	began time.Time // zero before the first byte
	parts int       // whole ones that have been written
	rest  int       // bytes of the next
}

func (p *pacedAnswer) Write(b []byte) (int, error) {
	if p.began.IsZero() {
		p.began = time.Now()
		p.x.w.WriteHeader(http.StatusOK)
	}
	p.rest += len(b)
	p.parts, p.rest = p.parts+p.rest/bodyPart, p.rest%bodyPart
	limits := &p.x.limits
	_ = p.x.control().SetWriteDeadline(p.began.Add(limits.answerTime + time.Duration(p.parts)*limits.bodyTimePerPart)) // a test's writer may have none
	return p.x.w.Write(b)
}

// importFile stores the object of the body, which is read three times, so it is in a file meanwhile.
func (x *exchange) importFile() error {
	leave, err := x.transfers.enter()
	if err != nil {
		return err
	}
	defer leave()
	file, err := os.CreateTemp("", "holdfast-import-")
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer func() { _, _ = file.Close(), os.Remove(file.Name()) }()
	_ = os.Remove(file.Name()) // a killed process leaves none then; Windows removes it at the end alone
	if err := x.bodyTo(file, x.config.MaxImportBytes); err != nil {
		return err
	}
	id, err := x.named(file)
	if err != nil {
		return err
	}
	ctx, cancel, err := x.bounded()
	if err != nil {
		return err
	}
	defer cancel()
	o := transfer.ImportOptions{Replace: x.flag("replace"), Alarms: x.flag("alarms"), LeaveMessages: x.flag("leaveMessages")}
	err = x.audited(auditEntry{Verb: "import", Class: id.Class, Object: id.Name, Filter: filterText(o)}, func() error {
		_, err := transfer.Import(ctx, x.host, file, o)
		return transferProblem(err)
	})
	if err != nil {
		return err
	}
	return x.json(http.StatusCreated, importedObject{id.Class, id.Name})
}

// maxHeaderBytes bounds the first line of a file: a class and a name, escaped.
const maxHeaderBytes = 64 << 10

// named returns the object that the first line of a file names, and goes back to its begin. As the other routes of objects
// it serves no jobs, no objects of the library and no class that the host does not have. A line in another form than that
// of an export may name another object here, and the import refuses it.
func (x *exchange) named(file io.ReadSeeker) (id storage.ID, err error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return id, fmt.Errorf("import: %w", err)
	}
	raw, err := bufio.NewReader(io.LimitReader(file, maxHeaderBytes)).ReadBytes('\n')
	if err != nil && err != io.EOF {
		return id, fmt.Errorf("import: %w", err)
	}
	var line struct {
		Object *importedObject `json:"object"`
	}
	if err := json.Unmarshal(raw, &line); err != nil || line.Object == nil {
		return id, fmt.Errorf("%w: line 1: it names no object", transfer.ErrFile)
	}
	id = storage.ID{Class: line.Object.Class, Name: line.Object.Name}
	if err := id.Validate(); err != nil {
		return id, fmt.Errorf("%w: %w", object.ErrBadName, err)
	}
	if err := x.plainClass(id.Class); err != nil {
		return id, err
	}
	_, err = file.Seek(0, io.SeekStart)
	return id, err
}
