package jobs

// EventOption changes how one event is added to a job.
type EventOption struct{ id string }

// EventID gives an event an id, by which a job knows it again: an event whose id
// it has acknowledged within its dedup time is not added a second time, and the
// repeat gets the first answer. The empty id is refused with ErrInvalid.
func EventID(id string) EventOption { return EventOption{id: id} }

// ID is the id that the option gives.
func (o EventOption) ID() string { return o.id }
