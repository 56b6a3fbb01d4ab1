package auth

import (
	"bufio"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// adding names the file to which a process of the tests adds tokens until it is killed.
const adding = "HOLDFAST_TEST_ADD_TOKENS"

func TestMain(m *testing.M) {
	if path := os.Getenv(adding); path != "" {
		addUntilKilled(path)
	}
	os.Exit(m.Run())
}

// addUntilKilled adds tokens and prints the id of each that is stored.
func addUntilKilled(path string) {
	tokens, err := Tokens(path, Options{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	for i := 0; ; i++ {
		added, _, err := tokens.Add(Token{Name: fmt.Sprint(i), Role: Viewer})
		if errors.Is(err, errLocked) { // the other process was stopped for 5 s with the lock
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(added.ID)
	}
}

// Proves V12: processes that add tokens at the same time and are killed with -9 lose no token that they have
// told of, and leave a file that can be read and changed.
func TestProcessesThatAreKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	var mu sync.Mutex
	var told []string
	for round := range 3 {
		var wg sync.WaitGroup
		for process := range 2 {
			wg.Go(func() {
				ids, err := addAndKill(path, 2+round+3*process)
				mu.Lock()
				defer mu.Unlock()
				if told = append(told, ids...); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	tokens, err := Tokens(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]bool{}
	for _, token := range tokens.List() {
		stored[token.ID] = true
	}
	for _, id := range told {
		if !stored[id] {
			t.Errorf("token %s is lost", id)
		}
	}
	if _, _, err := tokens.Add(Token{Name: "last", Role: Viewer}); err != nil || len(told) < 3*(2+5) {
		t.Errorf("after %d tokens: %v", len(told), err)
	}
}

// addAndKill runs a process that adds tokens and kills it when it has told of n. It returns the ids that
// it has told of.
func addAndKill(path string, n int) (ids []string, err error) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), adding+"="+path)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if ids = append(ids, lines.Text()); len(ids) == n {
			err = c.Process.Kill()
		}
	}
	_ = c.Wait() // it was killed
	if len(ids) < n {
		return ids, fmt.Errorf("the process has ended after %d tokens", len(ids))
	}
	return ids, err
}
