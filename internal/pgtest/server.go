package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Server is one server of PostgreSQL. One goroutine uses it at a time.
type Server struct {
	// Port is its port on 127.0.0.1.
	Port int

	pair *Pair
	name string
	data string
	cmd  *exec.Cmd
	log  *log
}

// log is the log of one run of a server.
type log struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed at the next line, and made anew
	ended bool          // all processes of the server have ended
}

// keptLines is how many lines of the log an error shows.
const keptLines = 30

// follow reads the log until the last process of the server has ended.
func (l *log) follow(r io.Reader) {
	for scan := bufio.NewScanner(r); scan.Scan(); {
		l.add(scan.Text(), false)
	}
	l.add("", true)
}

func (l *log) add(line string, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !ended {
		l.lines = append(l.lines, line)
	}
	l.ended = ended
	close(l.more)
	l.more = make(chan struct{})
}

// wait waits until the log has a line with a text, from line number from on, and returns the number of the line after it. It fails
// if the server ends before.
func (l *log) wait(text string, from int) (next int, err error) {
	for {
		l.mu.Lock()
		lines, ended, more := l.lines, l.ended, l.more
		l.mu.Unlock()
		for ; from < len(lines); from++ {
			if strings.Contains(lines[from], text) {
				return from + 1, nil
			}
		}
		if ended {
			return 0, fmt.Errorf("the server ended before it said %q:\n%s", text, strings.Join(lines[max(0, len(lines)-keptLines):], "\n"))
		}
		<-more
	}
}

// length is the number of the next line.
func (l *log) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines)
}

// waitEnd waits until no process of the server is left.
func (l *log) waitEnd() {
	for {
		l.mu.Lock()
		ended, more := l.ended, l.more
		l.mu.Unlock()
		if ended {
			return
		}
		<-more
	}
}

// Start starts the server and waits until it takes connections. A standby takes them for reading.
func (s *Server) Start() error {
	s.cmd = exec.Command(filepath.Join(s.pair.bin, "postgres"), "-D", s.data)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: s.pair.as}
	s.cmd.Dir = s.data
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.cmd.Stderr = w
	err = s.cmd.Start()
	_ = w.Close() // only the server writes
	if err != nil {
		_ = r.Close()
		return fmt.Errorf("pgtest: start the %s: %w", s.name, err)
	}
	l, cmd := &log{more: make(chan struct{})}, s.cmd
	s.log = l
	go func() {
		l.follow(r)
		_ = r.Close()
	}()
	if _, err := l.wait("database system is ready to accept", 0); err != nil {
		_ = cmd.Wait()
		return fmt.Errorf("pgtest: start the %s: %w", s.name, err)
	}
	return nil
}

// Kill ends all processes of the server with kill -9.
func (s *Server) Kill() error { return s.end(func() { signal(s.data, syscall.SIGKILL) }) }

// StopNow stops the server at once, without a checkpoint, so that its next start recovers from its log. Nothing that it had only in
// memory survives.
func (s *Server) StopNow() error {
	return s.end(func() { _ = s.cmd.Process.Signal(syscall.SIGQUIT) })
}

// end ends the server and waits for the end of all its processes.
func (s *Server) end(how func()) error {
	if s.cmd == nil {
		return errors.New("pgtest: the " + s.name + " does not run")
	}
	how()
	s.log.waitEnd()
	_ = s.cmd.Wait() // its status says how it was ended
	s.cmd = nil
	return nil
}

// Freeze stops all processes of the server, until Thaw. Its connections stay open.
func (s *Server) Freeze() { signal(s.data, syscall.SIGSTOP) }

// Thaw lets them go on.
func (s *Server) Thaw() { signal(s.data, syscall.SIGCONT) }

// Promote makes a primary of the standby, and waits until it takes writes.
func (s *Server) Promote() error {
	if err := os.WriteFile(filepath.Join(s.data, "promote"), nil, 0o644); err != nil {
		return err
	}
	from := s.log.length()
	if err := s.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		return err
	}
	_, err := s.log.wait("database system is ready to accept connections", from)
	return err
}

// LimitFiles bounds the size of the files that one process of the server writes: a number of bytes, or "unlimited". Beyond it PostgreSQL
// reports a full disk.
func (s *Server) LimitFiles(pid int, bytes string) error {
	cmd := exec.Command("prlimit", "--pid", strconv.Itoa(pid), "--fsize="+bytes+":")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.pair.as} // because the process is that user's
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: prlimit: %w\n%s", err, out)
	}
	return nil
}
