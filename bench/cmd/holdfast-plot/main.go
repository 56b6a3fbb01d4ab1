// Command holdfast-plot draws the figures of holdfast-bench as SVG files.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/rows"
	"github.com/holdfast-dev/holdfast/bench/internal/scale"
)

const usage = `usage: holdfast-plot [flags]

Draws the JSON of holdfast-bench as SVG files. Each flag names a file; those that
are not given are left out.

  holdfast-bench -size full -json > rows.json
  holdfast-bench scale -json > scale.json
  holdfast-plot -rows rows.json -scale scale.json -out ../docs/plots

flags:
`

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "holdfast-plot:", err)
		os.Exit(1)
	}
}

// run is the command without its process. It prints the names of the files that it
// wrote.
func run(args []string, out, log io.Writer) error {
	f := flag.NewFlagSet("holdfast-plot", flag.ContinueOnError)
	f.SetOutput(log)
	f.Usage = func() {
		fmt.Fprint(log, usage)
		f.PrintDefaults()
	}
	rowsFile := f.String("rows", "", "JSON of holdfast-bench: throughput against callers, cost against size")
	scaleFile := f.String("scale", "", "JSON of holdfast-bench scale: latency against load, firing in a row")
	peersFile := f.String("peers", "", `JSON array of {"what", "system", "value", "unit"}: ours beside others`)
	dir := f.String("out", "plots", "directory for the SVG files, made if it is absent")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *rowsFile == "" && *scaleFile == "" && *peersFile == "" {
		return errors.New("nothing to draw: see -h")
	}
	var charts []chart
	for _, in := range []struct {
		file string
		draw func(io.Reader) ([]chart, error)
	}{{*rowsFile, fromRows}, {*scaleFile, fromScale}, {*peersFile, fromPeers}} {
		if in.file == "" {
			continue
		}
		some, err := read(in.file, in.draw)
		if err != nil {
			return fmt.Errorf("%s: %w", in.file, err)
		}
		charts = append(charts, some...)
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	for _, c := range charts {
		path := filepath.Join(*dir, c.file+".svg")
		if err := c.save(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		fmt.Fprintln(out, path)
	}
	return nil
}

func read(file string, draw func(io.Reader) ([]chart, error)) ([]chart, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	return draw(f)
}

func fromRows(r io.Reader) ([]chart, error) {
	results, err := measure.ReadJSON[*rows.Result](r)
	return rowCharts(results), err
}

func fromScale(r io.Reader) ([]chart, error) {
	results, err := measure.ReadJSON[*scale.Result](r)
	return scaleCharts(results), err
}
