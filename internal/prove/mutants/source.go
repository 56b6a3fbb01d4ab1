package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// source is a package's code outside tests.
type source struct {
	name      string
	files     map[string][]byte    // by path from the root
	functions map[string]*function // as mutants name them
}

// function is a declared function.
type function struct {
	file    string
	begin   int    // of its body, behind the brace
	body    string // without braces and comments
	returns bool   // a value
	copies  string // of the body, one for each mutant
}

// load parses the files of a package's directory that are built here.
func load(root, dir string) (*source, error) {
	found, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	s := &source{files: make(map[string][]byte), functions: make(map[string]*function)}
	for _, path := range found {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if built, err := build.Default.MatchFile(filepath.Dir(path), name); err != nil || !built {
			continue
		}
		if err := s.parse(path, filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *source) parse(path, name string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	s.name, s.files[name] = file.Name.Name, text
	at := func(p token.Pos) int { return fset.Position(p).Offset }
	bare := bytes.Clone(text)
	for _, c := range file.Comments {
		for i := at(c.Pos()); i < at(c.End()); i++ {
			if bare[i] != '\n' {
				bare[i] = ' '
			}
		}
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			begin, end := at(f.Body.Lbrace)+1, at(f.Body.Rbrace)
			s.functions[functionName(f)] = &function{
				file: name, begin: begin, body: string(bare[begin:end]), returns: f.Type.Results != nil,
			}
		}
	}
	return nil
}

// functionName is T.Method, (*T).Method, or the name of a plain function.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	form, receiver := "%s.%s", f.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		form, receiver = "(*%s).%s", star.X
	}
	switch t := receiver.(type) {
	case *ast.IndexExpr:
		receiver = t.X
	case *ast.IndexListExpr:
		receiver = t.X
	}
	return fmt.Sprintf(form, receiver.(*ast.Ident).Name, f.Name.Name)
}

// add puts a copy of a function with a mutant's edits into the function.
func (f *function) add(mutant string, edits []edit) error {
	body, err := change(f.body, edits)
	if err != nil {
		return err
	}
	if !f.returns {
		body += "\nreturn\n"
	}
	f.copies += fmt.Sprintf("\nif mutant(%q) {\n%s}\n", mutant, body)
	return nil
}

// change applies edits to a function's body.
func change(body string, edits []edit) (string, error) {
	lines := strings.Split(body+"\n", "\n")
	var code []string // the lines that are not blank, trimmed
	var place []int   // where they are in lines
	for i, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			code, place = append(code, l), append(place, i)
		}
	}
	place = append(place, len(lines)-1)
	added := make([]string, len(lines)) // before each line
	for _, e := range edits {
		at, err := find(code, e.old())
		if err != nil {
			return "", err
		}
		for _, l := range e.lines {
			switch l[0] {
			case '+':
				added[place[at]] += l[1:] + "\n"
			case '-':
				lines[place[at]] = ""
				at++
			default:
				at++
			}
		}
	}
	var out strings.Builder
	for i, l := range lines {
		out.WriteString(added[i] + l + "\n")
	}
	return out.String(), nil
}

// find returns the place among the lines of code at which the old lines begin.
func find(code, old []string) (place int, err error) {
	count := 0
	for at := range len(code) - len(old) + 1 {
		if slices.Equal(code[at:at+len(old)], old) {
			place = at
			count++
		}
	}
	if count != 1 || len(old) == 0 {
		return 0, fmt.Errorf("the function contains these lines %d times, want once:\n\t%s", count, strings.Join(old, "\n\t"))
	}
	return place, nil
}

// mutated returns the files that have mutants, with their copies.
func (s *source) mutated() map[string]string {
	var all []*function
	for _, f := range s.functions {
		if f.copies != "" {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *function) int { return b.begin - a.begin }) // so that begin stays right
	files := make(map[string]string)
	for _, f := range all {
		text, ok := files[f.file]
		if !ok {
			text = string(s.files[f.file])
		}
		files[f.file] = text[:f.begin] + f.copies + text[f.begin:]
	}
	return files
}

// switchFile is added to each package that has a mutant.
const switchFile = `package %s

import "os"

var mutantName = os.Getenv(%q)

func mutant(name string) bool { return mutantName == name }
`

// mutate returns the text of each file that the mutants change or add.
func mutate(root string, ms []mutant) (map[string]string, error) {
	sources, files := make(map[string]*source), make(map[string]string)
	var errs []error
	for _, m := range ms {
		changes := make(map[*function][]edit)
		for _, e := range m.edits {
			s := sources[e.dir]
			if s == nil {
				var err error
				if s, err = load(root, e.dir); err != nil {
					return nil, err
				}
				sources[e.dir] = s
				files[filepath.Join(e.dir, "mutant_switch.go")] = fmt.Sprintf(switchFile, s.name, variable)
			}
			f := s.functions[e.function]
			switch {
			case e.function == "":
				files[filepath.Join(e.dir, "mutant_"+m.name+".go")] = "package " + s.name + "\n\n" + strings.Join(e.added(), "\n") + "\n"
			case f == nil:
				errs = append(errs, fmt.Errorf("%s.mutant: package %s has no function %s", m.name, e.dir, e.function))
			default:
				changes[f] = append(changes[f], e)
			}
		}
		for f, edits := range changes {
			if err := f.add(m.name, edits); err != nil {
				errs = append(errs, fmt.Errorf("%s.mutant: %s: %w", m.name, edits[0].function, err))
			}
		}
	}
	for _, s := range sources {
		maps.Copy(files, s.mutated())
	}
	return files, errors.Join(errs...)
}
