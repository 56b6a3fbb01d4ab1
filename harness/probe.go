package harness

import (
	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/seam"
)

// processProbe is the probe of one process. The machine counts points; the files of the
// checkers have the rest.
type processProbe struct {
	*machine.Process
	s     *Sim
	turns map[any]*watchedTurn // under way, by their ID
}

var (
	_ seam.Faulty  = (*processProbe)(nil)
	_ seam.Sharing = (*processProbe)(nil)
	_ seam.Turns   = (*processProbe)(nil)
)
