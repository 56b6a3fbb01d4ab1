package pgtest

import (
	"cmp"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// oldest is the oldest version of PostgreSQL that tests run with.
const oldest = 15

// root is where Debian installs PostgreSQL: one directory a version, none of which is in PATH.
var root = "/usr/lib/postgresql"

// Find returns the directory with the programs of PostgreSQL 15 or newer: the newest that Debian has installed, else that of initdb
// in PATH. Its error says what to install.
func Find() (bin string, err error) {
	installed, _ := filepath.Glob(filepath.Join(root, "*", "bin", "initdb")) // the pattern is right
	version := func(initdb string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb)))) // another name is no version
		return n
	}
	if len(installed) > 0 {
		newest := slices.MaxFunc(installed, func(a, b string) int { return cmp.Compare(version(a), version(b)) })
		if version(newest) >= oldest {
			return filepath.Dir(newest), nil
		}
	}
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return "", errors.New("PostgreSQL 15 or newer is not installed: apt-get install --no-install-recommends postgresql")
	}
	return filepath.Dir(initdb), nil
}
