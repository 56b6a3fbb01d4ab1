// Command holdfast-plot draws the figures of holdfast-bench as SVG files.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/rows"
	"github.com/holdfast-dev/holdfast/bench/internal/scale"
)

const usage = `usage: holdfast-plot [-dir DIRECTORY]

Draws rows.json, scale.json and peers.json of a directory as SVG files into its
folder plots. A file that isn't there is left out.

  holdfast-bench -size full -json > ../out/rows.json
  holdfast-bench scale -json > ../out/scale.json
  holdfast-plot

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
	dir := f.String("dir", "../out", "directory with the JSON files")
	if err := f.Parse(args); err != nil {
		return err
	}
	var charts []chart
	for name, draw := range map[string]func(io.Reader) ([]chart, error){"rows.json": fromRows, "scale.json": fromScale, "peers.json": fromPeers} {
		some, err := read(filepath.Join(*dir, name), draw)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		charts = append(charts, some...)
	}
	if len(charts) == 0 {
		return fmt.Errorf("nothing to draw in %s: see -h", *dir)
	}
	plots := filepath.Join(*dir, "plots")
	if err := os.MkdirAll(plots, 0o755); err != nil {
		return err
	}
	for _, c := range charts {
		path := filepath.Join(plots, c.file+".svg")
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
