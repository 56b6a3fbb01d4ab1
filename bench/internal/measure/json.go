package measure

import (
	"encoding/json"
	"io"
)

// WriteJSON writes results as one array, which is empty and not null if there
// are none.
func WriteJSON[R any](w io.Writer, results []R) error {
	if results == nil {
		results = []R{}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(results)
}

// ReadJSON is the reverse of WriteJSON.
func ReadJSON[R any](r io.Reader) (results []R, err error) {
	err = json.NewDecoder(r).Decode(&results)
	return results, err
}
