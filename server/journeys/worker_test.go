package journeys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// workerEnv makes the test binary the worker.
const workerEnv = "HOLDFAST_JOURNEY_WORKER"

// claim is a claimed task. The lease is sent back as it came.
type claim struct {
	Lease json.RawMessage
	Task  struct{ ID, In string }
}

// errLost says that the lease has ended, because the worker was too slow.
var errLost = errors.New("the lease is lost")

// work is worker.py in Go.
func work() error {
	for {
		if err := workOnce(); !errors.Is(err, errLost) {
			return err
		}
	}
}

// workOnce claims a task and ends it.
func workOnce() error {
	var claims []claim
	for len(claims) == 0 {
		if err := post("/claim", map[string]any{"n": 1, "lease": "2s"}, &claims); err != nil {
			return err
		}
		if len(claims) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
	lease, path := claims[0].Lease, "/tasks/"+claims[0].Task.ID
	fmt.Println("claimed", claims[0].Task.ID)
	for {
		if err := post(path+"/heartbeat", map[string]any{"lease": lease}, &lease); err != nil {
			return err
		}
		fmt.Println("heartbeat")
		if os.Getenv("HANG") == "" {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	if err := post(path+"/ack", map[string]any{"lease": lease, "out": "printed " + claims[0].Task.In}, nil); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

// post sends a value in JSON and decodes the answer into v, unless v is nil.
func post(path string, body, v any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequest("POST", os.Getenv("URL")+"/v1/pools/print"+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	switch {
	case err != nil:
		return err
	case a.StatusCode == http.StatusConflict:
		return errLost
	case a.StatusCode/100 != 2:
		return fmt.Errorf("%s: %s %s", path, a.Status, text)
	case v == nil:
		return nil
	}
	return json.Unmarshal(text, v)
}
