package jobs

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// DecodeError says that a stored value cannot be read by the present definition: it
// does not decode, or its migration failed. The value is kept as it is.
type DecodeError struct {
	ID       storage.ID // of the object
	Value    string     // its name in the object, say "state"
	Stored   string     // the version that it was stored under; empty if that had none
	Version  string     // of the present definition
	Err      error      // of the codec, or of Migrate
	Migrated bool       // Migrate read it; else the codec did
	Field    string     // the name of Migrate in the Config of the definition
}

// For a value of an object, Of sets its names in e, and returns e.
func (e *DecodeError) Of(id storage.ID, value string) *DecodeError {
	e.ID, e.Value = id, value
	return e
}

// maxCauseBytes is how much of the text of its cause is in a DecodeError, so that the
// text is stored whole, with its advice (engine.MaxTextBytes), but for very long names.
const maxCauseBytes = 512

// Error names the object, the value, both versions, the cause, and a way out.
func (e *DecodeError) Error() string {
	failed := "does not decode"
	if e.Migrated {
		failed = "is not migrated"
	}
	return fmt.Sprintf("%s: %s, stored under %s and read under %s, %s: %s: %s, or go back to %s",
		e.ID, e.Value, called(e.Stored), called(e.Version), failed, alarm.Cut(e.cause(), maxCauseBytes), e.remedy(), e.origin())
}

// remedy is the way forward.
func (e *DecodeError) remedy() string {
	switch {
	case e.Migrated:
		return "mend Config." + e.Field
	case e.Version == "":
		return "give Config a Version, and Config." + e.Field
	case e.Version == e.Stored:
		return "give Config another Version, and Config." + e.Field
	}
	return "give Config." + e.Field
}

// origin is the way back.
func (e *DecodeError) origin() string {
	if e.Stored == "" || e.Stored == e.Version {
		return "the program that stored it"
	}
	return called(e.Stored)
}

// cause is the text of Err, without the package of a panic.
func (e *DecodeError) cause() string {
	if p, ok := e.Err.(*seam.PanicError); ok {
		return fmt.Sprintf("it panicked: %v", p.Value)
	}
	return e.Err.Error()
}

func called(version string) string {
	if version == "" {
		return "no version"
	}
	return fmt.Sprintf("version %q", version)
}

// Unwrap returns the error of the codec, or of Migrate.
func (e *DecodeError) Unwrap() error { return e.Err }
