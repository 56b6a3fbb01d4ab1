package main

import (
	"go/ast"
	"go/token"
	"strings"
)

// render is the text of a file with all of its mutations as switches.
func (p *pkg) render(f file, all []mutation) string {
	var own []mutation
	for _, m := range all {
		if m.File == f.rel {
			own = append(own, m)
		}
	}
	r := renderer{file: f, base: p.fset.File(f.ast.Pos()).Base()}
	return r.text(token.Pos(r.base), token.Pos(r.base+len(f.text)), own)
}

type renderer struct {
	file file
	base int // the position of the file's first byte
}

// text is the code between two positions. The mutations are in the order of the
// code, each before those within it; those outside are ignored.
func (r renderer) text(from, to token.Pos, ms []mutation) string {
	var b strings.Builder
	for i := 0; i < len(ms); i++ {
		m := ms[i]
		if m.start < from || m.end > to {
			continue
		}
		within := i + 1
		for within < len(ms) && ms[within].start < m.end {
			within++
		}
		b.WriteString(r.raw(from, m.start))
		b.WriteString(m.wrap(m.Number, func(n ast.Node) string { return r.text(n.Pos(), n.End(), ms[i+1:within]) }))
		from, i = m.end, within-1
	}
	b.WriteString(r.raw(from, to))
	return b.String()
}

func (r renderer) raw(from, to token.Pos) string {
	return string(r.file.text[int(from)-r.base : int(to)-r.base])
}

// Variables of the environment: the number of the mutation that is switched on,
// and the file that gets the numbers of those that are reached.
const (
	onVariable      = "HOLDFAST_MUTATION"
	reachedVariable = "HOLDFAST_MUTATIONS_REACHED"
)

// switchFile is added to the package. It has the package's name, the two variables
// and the count of mutations.
const switchFile = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var mutationNumber, _ = strconv.Atoi(os.Getenv(%q))

var mutationReached, _ = os.OpenFile(os.Getenv(%q), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)

var mutationSeen [%d + 1]atomic.Bool

func mutationOn(number int) bool {
	if mutationReached != nil && !mutationSeen[number].Swap(true) {
		mutationReached.WriteString(strconv.Itoa(number) + "\n")
	}
	return number == mutationNumber
}

type mutationAmount interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func mutationSum[T mutationAmount](minus bool, a, b T) T {
	if minus {
		return a - b
	}
	return a + b
}

func mutationMore[T mutationAmount](on bool, a T) T {
	if on {
		return a + 1
	}
	return a
}

func mutationNil(on bool, err error) error {
	if on {
		return nil
	}
	return err
}
`
