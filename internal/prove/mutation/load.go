package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// pkg is a package with its types, without its tests.
type pkg struct {
	root  string // of the module
	dir   string
	rel   string // dir from the root, slash-separated
	path  string // of its import
	name  string
	fset  *token.FileSet
	files []file
	types *types.Package
	info  *types.Info
}

// file is one file of a package.
type file struct {
	path string
	rel  string // from the root of the module
	text []byte
	ast  *ast.File
}

// listed is the part of the output of go list that load reads.
type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
	DepOnly                       bool
	Module                        *struct{ Dir string }
}

// load reads a package and checks its types. Those of its imports come from the
// compiler's own files.
func load(ctx context.Context, pattern string) (*pkg, error) {
	l, exports, err := list(ctx, pattern, "-export", "-deps")
	if err != nil {
		return nil, err
	}
	return check(l, exports)
}

// goCommand is a go command in the module of its directory alone, because that need not be one
// of the workspace.
func goCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	return cmd
}

// list asks the go command for one package. It also returns the compiler's files of
// the packages that the flags ask for, by import path.
func list(ctx context.Context, pattern string, flags ...string) (listed, map[string]string, error) {
	args := append([]string{"list", "-json=ImportPath,Dir,Name,Export,GoFiles,DepOnly,Module"}, flags...)
	out, err := goCommand(ctx, append(args, pattern)...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return listed{}, nil, fmt.Errorf("list %s: %w", pattern, err)
	}
	exports := make(map[string]string)
	var found []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return listed{}, nil, fmt.Errorf("list %s: %w", pattern, err)
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly {
			found = append(found, l)
		}
	}
	if len(found) != 1 || found[0].Module == nil {
		return listed{}, nil, fmt.Errorf("%s is not one package of a module: name one, such as ./alarm", pattern)
	}
	return found[0], exports, nil
}

// check parses the files of a package and finds the types in them.
func check(l listed, exports map[string]string) (*pkg, error) {
	rel, err := filepath.Rel(l.Module.Dir, l.Dir)
	if err != nil {
		return nil, err
	}
	p := &pkg{root: l.Module.Dir, dir: l.Dir, rel: filepath.ToSlash(rel), path: l.ImportPath, name: l.Name, fset: token.NewFileSet()}
	var parsed []*ast.File
	for _, name := range l.GoFiles {
		f := file{path: filepath.Join(l.Dir, name), rel: path.Join(p.rel, name)}
		if f.text, err = os.ReadFile(f.path); err != nil {
			return nil, err
		}
		if f.ast, err = parser.ParseFile(p.fset, f.path, f.text, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		p.files, parsed = append(p.files, f), append(parsed, f.ast)
	}
	open := func(imported string) (io.ReadCloser, error) { return os.Open(exports[imported]) }
	config := types.Config{Importer: importer.ForCompiler(p.fset, "gc", open)}
	p.info = &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Uses: make(map[*ast.Ident]types.Object)}
	if p.types, err = config.Check(l.ImportPath, p.fset, parsed, p.info); err != nil {
		return nil, fmt.Errorf("find the types of %s: %w", p.rel, err)
	}
	return p, nil
}
