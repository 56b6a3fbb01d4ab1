package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/server/internal/patience"
)

// Server is an http.Handler that answers for one host. It may be mounted below a path with
// http.StripPrefix. All its methods may be called from any goroutine.
type Server struct {
	host    *object.Host
	config  Config
	mux     *http.ServeMux
	origins *http.CrossOriginProtection
	rates   *rates
	limits  limits
	streams streams
	exposed map[string]methods          // by class
	classes map[string]object.ClassInfo // of the host, by name
	source  why.Source                  // the host as it is asked why
	metrics *metrics
	history *history

	operations *operations
	bulk       *bulkRuns // of all Servers of the host
	overview   overview
	backups    *backups // nil without Config.Backups
	transfers  transfers
	serving    *serving
	refusals   refusals
}

// limits are bounds that a user cannot change. A test makes them smaller.
type limits struct {
	// A body is read within bodyTime, and bodyTimePerPart more for each bodyPart that has
	// arrived, so that a slow client holds its connection for a time that is known.
	bodyTime, bodyTimePerPart time.Duration
	// An answer is taken by the client within answerTime, and bodyTimePerPart more for each
	// bodyPart of it. Streams set their own.
	answerTime time.Duration
	// headerTime is from the accept, or the first byte of a later request, to the end of the
	// header, which has at most headerBytes; idleTime is between two requests of a connection.
	headerTime, idleTime time.Duration
	headerBytes          int
	// streams, and long polls, may be open in all, and streamsEach of one principal. A write of a stream takes at
	// most writeTime. A stream without an event pings after pingEvery, and the principal of each is
	// asked for again after checkEvery, so that a token that was revoked ends it.
	streams, streamsEach             int
	writeTime, pingEvery, checkEvery time.Duration
	// A page waits for pageTime for the answer of a job or a partition. One that does not answer may be held by a
	// turn, and the page says why all the same.
	pageTime time.Duration
	// A look at the host for the first page takes at most overviewTime, and shows the part that it has.
	overviewTime time.Duration
	// Metrics and pages wait for lookTime for a look at the repository, which may be on a disk that hangs.
	lookTime time.Duration
}

// bodyPart is how many bytes of a body are read at a time.
const bodyPart = 64 << 10

var defaultLimits = limits{
	bodyTime: 10 * time.Second, bodyTimePerPart: time.Second, answerTime: 10 * time.Second,
	headerTime: 5 * time.Second, idleTime: 2 * time.Minute, headerBytes: 16 << 10,
	streams: 10_000, streamsEach: 100, writeTime: 10 * time.Second, pingEvery: 15 * time.Second, checkEvery: 5 * time.Second,
	pageTime: 2 * time.Second, overviewTime: 500 * time.Millisecond, lookTime: time.Second,
}

// patient returns the limits with the process's patience for clients and the host, which only tests change.
func (l limits) patient() limits {
	for _, d := range []*time.Duration{
		&l.bodyTime, &l.bodyTimePerPart, &l.answerTime, &l.headerTime, &l.idleTime,
		&l.writeTime, &l.pageTime, &l.overviewTime, &l.lookTime,
	} {
		*d = patience.Times(*d)
	}
	return l
}

// New makes the server of a host that was opened with Definitions. The host stays the caller's, and the caller shuts it down. It returns an
// error that names the field of the Config that is wrong, for example a class that the host
// does not have. It starts nothing, but from now on runs of verbs over many that an end of the process has cut off
// go on.
func New(host *object.Host, c Config) (*Server, error) {
	if host == nil {
		return nil, fmt.Errorf("server: the host is nil")
	}
	c.setDefaults()
	classes := map[string]object.ClassInfo{}
	for _, info := range host.Classes() {
		classes[info.Name] = info
	}
	exposed, err := c.check(classes)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if _, ok := classes[bulkClass]; !ok {
		return nil, errors.New("server: the host has not the classes of the server: open it with object.Open(options, server.Definitions(classes...)...)")
	}
	if c.Webhooks != nil { // its dead letters are replayed as those of other pools
		c.Jobs = append(slices.Clone(c.Jobs), c.Webhooks.Described())
	}
	definitions := make([]object.Definition, len(c.Jobs))
	for i, job := range c.Jobs {
		definitions[i] = job
	}
	s := &Server{
		host: host, config: c, mux: http.NewServeMux(), origins: http.NewCrossOriginProtection(),
		rates: newRates(c.CallsPerSecond), limits: defaultLimits.patient(), exposed: exposed, serving: newServing(),
		classes: classes, source: why.Live(host, definitions...),
		operations: newOperations(host, c.Jobs),
	}
	if s.backups, err = newBackups(s); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.metrics = newMetrics(host, &s.streams, s.backups)
	s.history = newHistory(host.Collector())
	for _, rt := range s.routes() {
		s.handle(rt)
	}
	s.register()
	if tokens, ok := c.Auth.(interface{ OnChange(func(auth.Change)) }); ok {
		tokens.OnChange(s.noteTokens)
	}
	return s, nil
}

// handle adds a route to the multiplexer.
func (s *Server) handle(rt route) {
	rt.meter = new(atomic.Pointer[meter])
	s.mux.HandleFunc(rt.method+" "+rt.pattern, func(w http.ResponseWriter, _ *http.Request) {
		x := w.(*response).exchange
		x.route = &rt
		x.err = x.serve()
	})
}

// ServeHTTP answers one request. The steps are: the Host header (421), requests of other
// sites (403), the path and the method (404, 405), the principal (401), its role (403), its
// rate (429), and only then the handler of the route, which reads the body and the host. A
// panic is an answer 500 and a line of the log.
//
// The handler of a called method may run on the goroutine of the request, because a handover to another takes longer than
// a short handler. If it outlasts the wait, its client has the answer 504 in time all the same, the connection is closed
// (http.StateHijacked), and ServeHTTP returns when the method has ended. That is so for HTTP/1 alone, and not if a handler
// around the Server has wrapped the ResponseWriter: ServeHTTP then returns at the end of the wait.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{Server: s, r: r}
	x.begun = response{ResponseWriter: w, exchange: x}
	x.w = &x.begun
	defer x.count(time.Now())
	secure(w.Header(), r)
	if err := seam.Guard(x.dispatch, x.caught); err != nil {
		x.noteRefusal(err)
		x.fail(err)
	}
}

// The values of the headers that each answer has. All answers share them, so none changes a
// value in place: Header.Set and Header.Add do not.
var (
	noSniff    = []string{"nosniff"}
	noReferrer = []string{"no-referrer"}
	noStore    = []string{"no-store"}
	noSources  = []string{"default-src 'none'; frame-ancestors 'none'"}
)

// secure sets the headers that each answer has.
func secure(h http.Header, r *http.Request) {
	h["X-Content-Type-Options"] = noSniff
	h["Referrer-Policy"] = noReferrer
	h["Cache-Control"] = noStore
	h["Content-Security-Policy"] = noSources
	if r.TLS != nil {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// guard runs f and makes an error of a panic. A goroutine that f ends by runtime.Goexit ends
// here too, with a line of the log.
func (s *Server) guard(f func() error) error { return seam.Guard(f, s.caught) }

// caught logs a panic and makes an error of it. The panic by which net/http cuts a connection passes.
func (s *Server) caught(p *seam.PanicError) error {
	if p.Value == http.ErrAbortHandler {
		panic(http.ErrAbortHandler)
	}
	p.TakeStack()
	s.config.Logger.Error("server: panic", "panic", p.Value, "stack", string(p.Stack))
	return &panicked{p}
}

// caught is that of the server. The end of the goroutine by the handler of a call has its answer and its line already.
func (x *exchange) caught(p *seam.PanicError) error {
	if p.Exited() && x.hasHungUp() {
		return nil
	}
	return x.Server.caught(p)
}

// panicked is a panic that guard has logged.
type panicked struct{ *seam.PanicError }

// spawn runs f on a goroutine of its own. A panic of f is a line of the log, because it would
// otherwise end the process of the host. All goroutines of this package start here.
func (s *Server) spawn(f func()) {
	go func() {
		_ = s.guard(func() error { f(); return nil })
	}()
}

// dispatch brings the request to the handler of its route.
func (x *exchange) dispatch() error {
	if err := x.admit(); err != nil {
		return err
	}
	x.mux.ServeHTTP(x.w, x.r)
	if x.route == nil {
		return x.unrouted()
	}
	return x.err
}

// serve runs the steps that a route asks for, and its handler.
func (x *exchange) serve() error {
	if err := x.authorize(); err != nil {
		return err
	}
	if err := x.parseQuery(); err != nil {
		return err
	}
	return x.route.handle(x)
}

// logError writes one line about an error that is the server's and not the client's.
func (x *exchange) logError(err error) {
	x.config.Logger.Error("server: request failed", slog.String("method", x.r.Method), slog.String("route", x.pattern()), slog.Any("error", err))
}

// pattern names the route for the log, which has no paths, because they have names of users.
func (x *exchange) pattern() string {
	if x.route == nil {
		return ""
	}
	return x.route.pattern
}
