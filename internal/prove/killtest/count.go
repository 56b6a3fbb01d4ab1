package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// totals are the numbers that are compared.
type totals struct {
	Files, Bytes, Lines int64
}

func (t totals) String() string {
	return fmt.Sprintf("%d files, %d bytes, %d lines", t.Files, t.Bytes, t.Lines)
}

// count counts with find and wc, which share no code with the example.
func count(ctx context.Context, dir string) (t totals, err error) {
	for _, part := range []struct {
		to     *int64
		script string
	}{
		{&t.Files, `find -H "$1" -name '*.go' -type f -print0 | tr -dc '\000' | wc -c`},
		{&t.Bytes, `find -H "$1" -name '*.go' -type f -exec cat {} + | wc -c`},
		{&t.Lines, `find -H "$1" -name '*.go' -type f -exec cat {} + | wc -l`},
	} {
		out, err := exec.CommandContext(ctx, "sh", "-c", part.script, "sh", dir).Output()
		if err != nil {
			return t, fmt.Errorf("count with find and wc: %w", err)
		}
		if *part.to, err = strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64); err != nil {
			return t, fmt.Errorf("count with find and wc: %w", err)
		}
	}
	return t, nil
}

// result is the last line of a run of the example.
type result struct {
	totals
	Dead                            int
	Recovered, Executions, Openings int64
}

func parseResult(out []byte) (r result, err error) {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1]
	if err := json.Unmarshal([]byte(last), &r); err != nil {
		return r, fmt.Errorf("last line of ingest is not JSON: %q", last)
	}
	return r, nil
}
