package main

import (
	"fmt"
	"hash/fnv"
)

// observation is a file as the agent sees it.
type observation struct {
	Path   string `json:"path"`
	Lines  int    `json:"lines"`
	Notes  int    `json:"notes"` // lines about work that is left
	Unsafe bool   `json:"unsafe,omitempty"`
	Broken bool   `json:"broken,omitempty"` // it cannot be read
}

// verdict is the decision about a file.
type verdict string

const (
	readIt verdict = "read"
	skimIt verdict = "skim"
	skipIt verdict = "skip"
)

// event is one step of the agent: a file and the decision about it.
type event struct {
	observation
	Verdict verdict `json:"verdict"`
}

// state is all that the agent knows: sums over the files so far, and the lines that the
// reviewer has time for.
type state struct {
	Seen   int    `json:"seen"`
	Lines  int    `json:"lines"`
	Notes  int    `json:"notes"`
	Read   int    `json:"read"`
	Skim   int    `json:"skim"`
	Skip   int    `json:"skip"`
	Budget int    `json:"budget"`
	Trail  uint64 `json:"trail"` // depends on each event and on their order
}

// A reviewer has time for some more lines with each file, and reads a tenth of a file that he
// skims.
const (
	linesPerFile = 60
	skimmedPart  = 10
)

// decide is the verdict about a file in a state. Files with more notes a line than those
// before are worth a look, and so are those that import unsafe; how closely they can be read
// depends on the time that is left.
func decide(s state, o observation) verdict {
	mean := s.Notes * 1000 / (s.Lines + 1)
	worth := o.Notes * 1000 / (o.Lines + 1)
	switch {
	case o.Broken:
		return skipIt
	case (o.Unsafe || worth > 2*mean) && o.Lines <= s.Budget:
		return readIt
	case (o.Unsafe || worth > mean) && o.Lines/skimmedPart <= s.Budget:
		return skimIt
	}
	return skipIt
}

// apply is the state after an event.
func apply(s state, e event) (state, error) {
	s.Seen++
	s.Lines += e.Lines
	s.Notes += e.Notes
	s.Budget += linesPerFile
	switch e.Verdict {
	case readIt:
		s.Read++
		s.Budget -= e.Lines
	case skimIt:
		s.Skim++
		s.Budget -= e.Lines / skimmedPart
	case skipIt:
		s.Skip++
	default:
		return s, fmt.Errorf("there is no verdict %q", e.Verdict)
	}
	h := fnv.New64a()
	fmt.Fprint(h, s.Trail, e)
	s.Trail = h.Sum64()
	return s, nil
}
