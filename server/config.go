package server

import (
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
)

// Config says what a Server exposes, to whom and within which bounds.
type Config struct {
	// Auth says who makes a request. It must be given; Insecure lets everyone in.
	Auth auth.Authenticator
	// Objects are the classes with methods that can be called.
	Objects []Exposed
	// Jobs are the job types and pools with verbs that can be used. Jobs of others are
	// listed, because lists read stored rows, and can be operated by nobody.
	Jobs []verbs.Described
	// Hosts are the values of the Host header that are answered, with their ports if they have
	// one. Default: localhost, 127.0.0.1 and [::1] with any port. Others get 421, because a web page
	// could otherwise reach a server on the loopback under a name of its own.
	Hosts []string
	// Separator ends each prefix of a Grant and of a Principal. Default "/".
	Separator string
	// MaxBodyBytes bounds the body of a request. Default 1 MiB.
	MaxBodyBytes int64
	// Timeout is how long a call waits for its answer at most. A client asks for less by the
	// header Holdfast-Timeout. The end of the wait does not end the handler. Default 60 s.
	Timeout time.Duration
	// CallsPerSecond bounds the requests of one principal. Default 0: no bound.
	CallsPerSecond float64
	// Logger takes one line for each panic and each error 500. Default: slog.Default().
	Logger *slog.Logger
}

// Exposed is a class of objects with methods that can be called. Class makes one.
type Exposed struct {
	class   object.Definition
	name    string
	methods []string // none: all
}
