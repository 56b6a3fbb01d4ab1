package main

import (
	"math/rand/v2"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		os.Exit(program(dir))
	}
	os.Exit(m.Run())
}

// A call that was answered is in the store, whenever the process was killed; a repeat under its
// key gets the first answer and changes nothing; a stream of an object that comes back gives each
// event once, and none that the store has lost. Proves V2, V3, V7 and V8.
func TestKilledServerKeepsItsAnswers(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	f, err := campaign(t.Context(), t.TempDir(), 7, 4, func() instant {
		return instant{listening: true, answers: 20 + random.IntN(200)}
	})
	t.Log(f)
	if err != nil {
		t.Error(err)
	}
}
