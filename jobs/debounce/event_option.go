package debounce

// EventOption is an option of Job.Add.
type EventOption struct{ id string }

// EventID gives an event an id, so that a repeated Add is recognised: if the
// job acknowledged an event with this id within Config.Dedup, it does not add
// the event again and returns the first Ack. Add returns jobs.ErrInvalid for an
// empty id.
func EventID(id string) EventOption { return EventOption{id: id} }

// ID returns the id of the option.
func (o EventOption) ID() string { return o.id }
