// Command table prints the figures of a run, ours beside those of the peers, and
// writes them as holdfast-plot reads them.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
)

func main() {
	figures := flag.String("figures", "", "file with the figures of all rounds")
	ours := flag.String("ours", "Holdfast", "the system with which the others are compared")
	out := flag.String("json", "", "file to write for holdfast-plot -peers")
	flag.Parse()
	if err := run(*figures, *ours, *out); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(figures, ours, out string) error {
	f, err := os.Open(figures)
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	all, err := figure.Read(f)
	if err != nil {
		return err
	}
	rows := sum(all)
	if err := show(os.Stdout, rows, ours); err != nil {
		return err
	}
	if warning := unsteady(rows); warning != "" {
		fmt.Printf("\n%s\n", warning)
	}
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}
