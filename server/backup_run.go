package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/admin/backup"
	"github.com/holdfast-dev/holdfast/internal/metric"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

const (
	// maxFindings bounds the findings of a verification that are shown.
	maxFindings = 20
	// maxReasons bounds the snapshots whose verification has failed in this process, of which the error is known.
	maxReasons = 100
	// lookAge is how old a look at the repository may be for the metrics.
	lookAge = time.Minute
	// endLookTime bounds the look after a backup.
	endLookTime = 10 * time.Second
)

// errEnding is why the end of the server ends a backup.
var errEnding = errors.New("the server is ending")

// backups makes the backups of a host, one at a time. A Server without Config.Backups has none.
type backups struct {
	server     *Server
	repository *backup.Repository
	store      *storage.Store

	reading chan struct{} // one slot: the goroutine that reads the repository fills it
	seen    atomic.Pointer[repositoryLook]

	mu      sync.Mutex // guards the rest
	running *backupRun
	over    chan struct{} // of the run that is under way: closed at its end
	last    *backupRun    // nothing changes it
	done    *backupRun    // the last that is verified; nothing changes it
	reasons []backupRun   // those that have failed after their snapshot was made, the oldest first
}

// repositoryLook is the snapshots of a repository as they were, the oldest first. Nothing changes them.
type repositoryLook struct {
	at   time.Time // by the steady clock
	list []backup.Snapshot
	err  error // of snapshots that cannot be read
}

// newBackups returns nil without Config.Backups. It touches no file.
func newBackups(s *Server) (*backups, error) {
	store := s.host.Store()
	switch {
	case s.config.Backups == nil:
		return nil, nil
	case store.Dir() == "":
		return nil, errors.New("Config.Backups is set, and the store of the host keeps no files")
	}
	return &backups{server: s, repository: s.config.Backups, store: store, reading: make(chan struct{}, 1)}, nil
}

// read looks at the repository. It returns when ctx ends, while one goroutine at most is left behind by all callers.
func (b *backups) read(ctx context.Context) (*repositoryLook, error) {
	select {
	case b.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	looked := make(chan *repositoryLook, 1)
	b.server.spawn(func() {
		defer func() { <-b.reading }()
		list, err := b.repository.List()
		if errors.Is(err, backup.ErrNoRepository) && len(list) == 0 {
			err = nil // the first backup makes it
		}
		l := &repositoryLook{b.server.host.Seams().Steady(), list, err}
		b.seen.Store(l)
		looked <- l
	})
	select {
	case l := <-looked:
		return l, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// look returns a look that is young enough for metrics, or the newest that there is; nil if there is none.
func (b *backups) look() *repositoryLook {
	if l := b.seen.Load(); l != nil && b.server.host.Seams().Steady().Sub(l.at) < lookAge {
		return l
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.server.limits.lookTime)
	defer cancel()
	_, _ = b.read(ctx) // a disk that hangs has the last one shown
	return b.seen.Load()
}

// newest is the newest snapshot of a store that is verified; nil if there is none.
func (l *repositoryLook) newest(store string) *backup.Snapshot {
	for i := len(l.list) - 1; i >= 0; i-- {
		if s := &l.list[i]; s.Store == store && !s.Verified.IsZero() {
			return s
		}
	}
	return nil
}

// lastVerified is when the newest backup was begun that is verified: zero if there is none. known is false if the
// server makes none, or if the repository could not be read yet.
func (b *backups) lastVerified() (known bool, at time.Time) {
	if b == nil {
		return false, at
	}
	l := b.look()
	if l == nil {
		return false, at
	}
	if newest := l.newest(b.store.ID()); newest != nil {
		at = newest.Begun
	}
	return true, at
}

// listed is a snapshot with the reason for which it does not count.
func (b *backups) listed(s backup.Snapshot, running *backupRun) listedSnapshot {
	l := listedSnapshot{Snapshot: s, Other: s.Store != b.store.ID()}
	if s.Verified.IsZero() {
		l.Unverified = b.reason(s.Name, running)
	}
	return l
}

// reason tells why a snapshot was not verified at a look before running was asked for.
func (b *backups) reason(name string, running *backupRun) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if running != nil && running.Snapshot == name || b.done != nil && b.done.Snapshot == name {
		return "it is being verified"
	}
	for _, run := range b.reasons {
		if run.Snapshot == name {
			return run.Error
		}
	}
	return "it was never verified to the end: holdfast backup verify does it"
}

// begin takes the place of the run that is under way, or refuses it.
func (b *backups) begin(run backupRun) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.server.serving.ending.Err() != nil: // before wait, which follows it
		return object.ErrShutdown
	case b.running != nil:
		return backupRunning(b.running)
	}
	b.running, b.over = &run, make(chan struct{})
	return nil
}

// runs are the run that is under way and the newest that has ended; nil if there is none.
func (b *backups) runs() (running, last *backupRun) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running != nil {
		now := *b.running
		running = &now
	}
	return running, b.last
}

// change changes the run that is under way.
func (b *backups) change(f func(*backupRun)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b.running)
}

// wait waits for the end of the run that is under way. Nothing begins after EndStreams.
func (b *backups) wait(ctx context.Context) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	running, over := b.running != nil, b.over
	b.mu.Unlock()
	if !running {
		return nil
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("server: shutdown: a backup is still under way: %w", ctx.Err())
	}
}

// run makes the backup that has begun. Its errors are its own.
func (b *backups) run(audit begunAudit) {
	began := b.server.host.Seams().Steady()
	err := errors.New("server: panic: the log tells of it")
	defer func() { b.end(audit, began, err) }()
	ctx, cancel := b.untilEnd()
	defer cancel()
	err = b.make(ctx)
}

// untilEnd returns the context of a backup: it ends when the server, or the host, ends.
func (b *backups) untilEnd() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := context.AfterFunc(b.server.serving.ending, func() { cancel(errEnding) })
	b.server.spawn(func() {
		select {
		case <-b.server.host.Done():
			cancel(object.ErrShutdown)
		case <-ctx.Done():
		}
	})
	return ctx, func() { stop(); cancel(nil) }
}

// make makes a snapshot and verifies it.
func (b *backups) make(ctx context.Context) error {
	made, err := b.repository.Create(ctx, b.store)
	if err != nil {
		return err
	}
	b.change(func(run *backupRun) { run.State, run.Snapshot, run.Bytes = verifying, made.Name, made.Bytes })
	_, err = b.repository.Verify(ctx, made.Name, func(f storage.Finding) {
		b.change(func(run *backupRun) {
			if len(run.Findings) < maxFindings {
				run.Findings = append(run.Findings, findingText(f))
			}
		})
	})
	return err
}

// findingText is a finding in one line.
func findingText(f storage.Finding) string {
	text := f.Text
	if f.Object != (storage.ID{}) {
		text = fmt.Sprintf("%q/%q: %s", f.Object.Class, f.Object.Name, text)
	}
	if f.File != "" {
		text = f.File + ": " + text
	}
	return text
}

// end tells of the end of a backup: in the audit, in the log, and then to all.
func (b *backups) end(audit begunAudit, began time.Time, err error) {
	seams := b.server.host.Seams()
	running, _ := b.runs()
	ended := *running
	ended.State, ended.Ended, ended.Seconds = verified, seams.Clock.Now().UTC(), seams.Steady().Sub(began).Seconds()
	ctx, cancel := context.WithTimeout(context.Background(), endLookTime)
	defer cancel()
	_, _ = b.read(ctx) // without it the metrics look later
	if err != nil {
		ended.State, ended.Error = failed, err.Error()
		b.server.config.Logger.Error("server: backup failed", slog.String("id", ended.ID), slog.String("snapshot", ended.Snapshot), slog.Any("findings", ended.Findings), slog.Any("error", err))
		err = backupFailed(&ended)
	}
	audit.end(err, 0)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running, b.last = nil, &ended
	switch {
	case err == nil:
		b.done = &ended
	case ended.Snapshot != "":
		b.reasons = append(b.reasons, ended)
		b.reasons = b.reasons[max(len(b.reasons)-maxReasons, 0):]
	}
	close(b.over)
}

// backupFailed is the problem of a backup that has failed. It has left a snapshot behind if that could not be verified.
func backupFailed(run *backupRun) *problem {
	p := &problem{Type: "backup-failed", Title: "The backup has failed.", Status: http.StatusInternalServerError, Outcome: none}
	if run.Snapshot != "" {
		p.Outcome = unknown
	}
	return p
}

// Descriptions of the metrics of backups.
var (
	verifiedDesc = gaugeDesc(metric.BackupVerified)
	bytesDesc    = gaugeDesc(metric.BackupBytes)
	tookDesc     = gaugeDesc(metric.BackupSeconds)
)

func gaugeDesc(m *metric.Metric) *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, nil, nil)
}

// Describe is of prometheus.Collector.
func (b *backups) Describe(out chan<- *prometheus.Desc) {
	out <- verifiedDesc
	out <- bytesDesc
	out <- tookDesc
}

// Collect gives the metrics. The time of a store without a backup is zero, so that an alert sees it.
func (b *backups) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) { out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	if l := b.look(); l != nil {
		at, bytes := 0.0, 0.0
		if newest := l.newest(b.store.ID()); newest != nil {
			at, bytes = float64(newest.Begun.UnixMilli())/1000, float64(newest.Bytes)
		}
		gauge(verifiedDesc, at)
		gauge(bytesDesc, bytes)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done != nil {
		gauge(tookDesc, b.done.Seconds)
	}
}
