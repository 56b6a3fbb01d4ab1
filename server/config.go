package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/admin/backup"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/webhook"
)

// Config has the classes and jobs that a Server exposes, its principals and its bounds.
type Config struct {
	// Auth finds the principal of a request. It must be given: auth.Tokens in production, or
	// auth.Insecure, which lets everyone on this machine in. One that is no auth.Finder ends the verbs over many that a
	// restart has cut off.
	Auth auth.Authenticator
	// Objects are the classes with methods that can be called.
	Objects []Exposed
	// Jobs are the job types and pools with verbs that can be used. Jobs of others are
	// listed, because lists read stored rows, but cannot be operated.
	Jobs []verbs.Described
	// Backups is the repository for the backups of the host's store, best on another disk, see backup.Open. An admin
	// makes one by POST /v1/backups or on the page; run it each night by a timer. Default: nil, and the server makes none.
	Backups *backup.Repository
	// Webhooks are the subscriptions of the host for an admin to see and change
	// at /v1/webhooks and on the page. Default: nil, and the server shows none.
	Webhooks *webhook.Webhooks
	// MaxImportBytes bounds the body of an import of an object, which is in a file of os.TempDir until it is stored.
	// Default 256 MiB.
	MaxImportBytes int64
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
	// HandlerTimeout is how long the context of a called method lasts, from the begin of its turn. It
	// goes on when the wait for the answer has ended, so that a handler does not stop halfway because its client
	// has left. Default 60 s.
	HandlerTimeout time.Duration
	// CallsPerSecond bounds the requests of one principal. Default 0: no bound.
	CallsPerSecond float64
	// TLS makes Serve speak TLS, with the certificates in it. Default: plain HTTP, which Serve
	// offers on the loopback alone.
	TLS *tls.Config
	// BehindTLS says that a proxy in front ends TLS, so that Serve may offer plain HTTP on other
	// addresses. Default: false.
	BehindTLS bool
	// Listening is called once by Serve, with the addresses on which it listens, before it
	// answers a request. Default: nothing is called.
	Listening func(at []net.Addr)
	// Linger is how long Serve goes on after its context has ended, while /readyz answers 503: a
	// little more than the time between two looks of a load balancer. Default: 0.
	Linger time.Duration
	// ShutdownTimeout bounds the end of Serve after Linger: three quarters are for the requests
	// under way, and the rest is for the host. Default: 20 s.
	ShutdownTimeout time.Duration
	// KeepHost makes Serve leave the host open when it ends. Default: Serve shuts it down.
	KeepHost bool
	// Logger takes one line for each panic and for each answer from status 500 on, but 504. It takes
	// the lines of net/http too. Default: slog.Default().
	Logger *slog.Logger
}

// Exposed is a class of objects with methods that can be called. Class makes one.
type Exposed struct {
	class   string
	methods []string // none: all
}

// Class exposes methods of a class, or all of them if none is named. The class must be one of
// the host, and not that of a job type, whose verbs are exposed by Config.Jobs.
func Class[T any](c *object.Class[T], methods ...string) Exposed {
	return Exposed{class: c.Name(), methods: slices.Clone(methods)}
}

// methods are the exposed methods of a class, by name.
type methods map[string]object.MethodInfo

// setDefaults fills in the fields that are zero.
func (c *Config) setDefaults() {
	if c.Separator == "" {
		c.Separator = "/"
	}
	if c.MaxBodyBytes == 0 {
		c.MaxBodyBytes = 1 << 20
	}
	if c.MaxImportBytes == 0 {
		c.MaxImportBytes = 256 << 20
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	if c.HandlerTimeout == 0 {
		c.HandlerTimeout = time.Minute
	}
	if c.ShutdownTimeout == 0 {
		c.ShutdownTimeout = defaultShutdownTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
}

// check returns the first mistake, with the name of its field, or the exposed methods.
func (c *Config) check(classes map[string]object.ClassInfo) (map[string]methods, error) {
	switch {
	case c.Auth == nil:
		return nil, errors.New("Config.Auth is nil: say who makes a request")
	case c.MaxBodyBytes < 0:
		return nil, fmt.Errorf("Config.MaxBodyBytes is %d", c.MaxBodyBytes)
	case c.MaxImportBytes < 0:
		return nil, fmt.Errorf("Config.MaxImportBytes is %d", c.MaxImportBytes)
	case c.Timeout < 0:
		return nil, fmt.Errorf("Config.Timeout is %v", c.Timeout)
	case c.HandlerTimeout < 0:
		return nil, fmt.Errorf("Config.HandlerTimeout is %v", c.HandlerTimeout)
	case c.Linger < 0:
		return nil, fmt.Errorf("Config.Linger is %v", c.Linger)
	case c.ShutdownTimeout < 0:
		return nil, fmt.Errorf("Config.ShutdownTimeout is %v", c.ShutdownTimeout)
	case c.TLS != nil && len(c.TLS.Certificates) == 0 && c.TLS.GetCertificate == nil && c.TLS.GetConfigForClient == nil:
		return nil, errors.New("Config.TLS has no certificate")
	case !(c.CallsPerSecond >= 0 && c.CallsPerSecond < math.Inf(1)):
		return nil, fmt.Errorf("Config.CallsPerSecond is %v", c.CallsPerSecond)
	case slices.Contains(c.Hosts, ""):
		return nil, errors.New("Config.Hosts has an empty value")
	}
	if t, ok := c.Auth.(separated); ok && t.Separator() != c.Separator {
		return nil, fmt.Errorf("Config.Separator is %q, and the prefixes of Config.Auth end in %q", c.Separator, t.Separator())
	}
	if _, ok := classes[webhook.Class]; c.Webhooks != nil && !ok {
		return nil, errors.New("Config.Webhooks is set, and the host has not their classes: pass Webhooks.Definitions to object.Open")
	}
	if err := checkJobs(c.Jobs, classes); err != nil {
		return nil, err
	}
	return exposed(c.Objects, classes)
}

// separated is an Authenticator that has checked that all its prefixes end in a separator.
type separated interface{ Separator() string }

// checkJobs returns the first mistake in Config.Jobs.
func checkJobs(jobs []verbs.Described, classes map[string]object.ClassInfo) error {
	seen := map[string]bool{}
	for i, job := range jobs {
		if job == nil {
			return fmt.Errorf("Config.Jobs[%d] is nil", i)
		}
		name := job.Name()
		switch _, ok := classes[name]; {
		case !ok:
			return fmt.Errorf("Config.Jobs: the host has no %q: pass it to object.Open", name)
		case seen[name]:
			return fmt.Errorf("Config.Jobs has %q twice", name)
		}
		seen[name] = true
	}
	return nil
}

// exposed returns the methods of Config.Objects, or the first mistake.
func exposed(objects []Exposed, classes map[string]object.ClassInfo) (map[string]methods, error) {
	all := map[string]methods{}
	for _, e := range objects {
		info, ok := classes[e.class]
		switch {
		case !ok:
			return nil, fmt.Errorf("Config.Objects: the host has no class %q: pass it to object.Open", e.class)
		case info.Options.Internal || system(e.class):
			return nil, fmt.Errorf("Config.Objects: the class %q is of a job type or the library: name a job type in Config.Jobs", e.class)
		case all[e.class] != nil:
			return nil, fmt.Errorf("Config.Objects has the class %q twice", e.class)
		}
		chosen, err := choose(info, e.methods)
		if err != nil {
			return nil, err
		}
		all[e.class] = chosen
	}
	return all, nil
}

// choose returns the methods of a class with the names, or all if there is no name.
func choose(info object.ClassInfo, names []string) (methods, error) {
	all := methods{}
	for _, m := range info.Methods {
		all[m.Name] = m
	}
	if len(names) == 0 {
		return all, nil
	}
	chosen := methods{}
	for _, name := range names {
		m, ok := all[name]
		if !ok {
			return nil, fmt.Errorf("Config.Objects: the class %q has no method %q", info.Name, name)
		}
		chosen[name] = m
	}
	return chosen, nil
}

// system reports whether a class belongs to the library, so that only routes of its own serve it.
func system(class string) bool { return strings.HasPrefix(class, "holdfast.") }
