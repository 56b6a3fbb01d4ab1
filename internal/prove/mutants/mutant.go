package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// mutant is a bug that the tests must find.
type mutant struct {
	// Number is that of the list that the project began with, 1 to 17, or 0. Two
	// mutants may be two forms of one number.
	Number  int
	Name    string // the bug in few words, joined by hyphens
	Promise string // the number in docs/CONTRACT.md that it breaks
	File    string // from the root of the repository
	Edits   []edit
	Package string // of the test that finds it, from the root of the repository
	Test    string // its name, with that of a subtest if that is enough
}

// edit replaces Old, which the file holds exactly once. In New the bug is switched
// by mutant("name"), with the name of the mutant.
type edit struct{ Old, New string }

// mutants are all of them, in the order of their numbers, then of the tables.
func mutants() []mutant {
	all := slices.Concat(
		storageMutants,
		alarmMutants,
		objectMutants,
		jobMutants,
		typeMutants,
		turnMutants,
		limitMutants,
		suspectMutants,
		poolMutants,
		phaseMutants,
		scheduleMutants,
		runMutants,
		permitMutants,
		storeMutants,
		orderMutants,
		migrateMutants,
		purgeMutants,
		messageMutants,
		deliveryMutants,
		delayMutants,
		deadMutants,
		sentMutants,
		workflowMutants,
		journalMutants,
		simulationMutants,
		restMutants,
		breakerMutants,
		branchMutants,
		healMutants,
		whyMutants,
		timerMutants,
		untouchedMutants,
		directoryMutants,
		letterMutants,
		transferMutants,
		backupMutants,
		previewMutants,
		listMutants,
		explainMutants,
		observerMutants,
		tapMutants,
		feedMutants,
		serverMutants,
		webhookMutants,
		outcomeMutants,
		shardlogMutants,
		overLogMutants,
		clusterMutants,
	)
	slices.SortStableFunc(all, func(a, b mutant) int { return rank(a) - rank(b) })
	return all
}

// rank puts those without a number last.
func rank(m mutant) int {
	if m.Number == 0 {
		return 1 << 10
	}
	return m.Number
}

// dir is the directory of the package that the mutant is in.
func (m mutant) dir() string { return path.Dir(m.File) }

// apply puts all the mutants of one file into its text.
func apply(text string, ms []mutant) (string, error) {
	type patch struct {
		edit
		at int
	}
	var patches []patch
	for _, m := range ms {
		for _, e := range m.Edits {
			at := strings.Index(text, e.Old)
			if n := strings.Count(text, e.Old); n != 1 {
				return "", fmt.Errorf("mutant %s: %s holds its old text %d times, want once: bring internal/prove/mutants up to date with it:\n%s", m.Name, m.File, n, e.Old)
			}
			patches = append(patches, patch{e, at})
		}
	}
	slices.SortFunc(patches, func(a, b patch) int { return a.at - b.at })
	var out strings.Builder
	done := 0
	for _, p := range patches {
		if p.at < done {
			return "", fmt.Errorf("two mutants change the same text: make one old text shorter:\n%s", p.Old)
		}
		out.WriteString(text[done:p.at])
		out.WriteString(p.New)
		done = p.at + len(p.Old)
	}
	out.WriteString(text[done:])
	return out.String(), nil
}
