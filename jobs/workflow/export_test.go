package workflow

// LimitSignals lowers the limit of signals that wait, so that a story which fills it is short.
func LimitSignals(w Named, n int) { w.of().maxSignals = n }
