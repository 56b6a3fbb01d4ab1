package jobs

import "encoding/json"

// RearmOptions say how Rearm walks the jobs of a class. The zero value is fit for
// production.
type RearmOptions struct {
	// AtOnce is how many jobs are woken at a time. Zero means 16.
	AtOnce int
	// Page is how many jobs are read at a time, at most object.MaxPage. Zero means 256.
	Page int
	// Progress is called after each page with the counts so far. It is called from the
	// task of Rearm. Nil: nothing is told.
	Progress func(Rearmed)
}

// Rearmed is the result of Rearm.
type Rearmed struct {
	Jobs   int `json:"jobs"`   // looked at
	Moved  int `json:"moved"`  // their alarm is earlier now
	Failed int `json:"failed"` // that could not be woken, such as those of an unreadable state
	// Err joins the first errors of those that failed, at most ten; its text in JSON.
	Err error `json:"err"`
}

// MarshalJSON writes Err as its text, and leaves it out if it is nil.
func (r Rearmed) MarshalJSON() ([]byte, error) {
	type plain Rearmed // without this method
	out := struct {
		plain
		Err string `json:"err,omitempty"`
	}{plain: plain(r)}
	if r.Err != nil {
		out.Err = r.Err.Error()
	}
	return json.Marshal(out)
}
