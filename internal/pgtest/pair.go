package pgtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Pair is a primary and its synchronous standby.
type Pair struct {
	Primary, Standby *Server

	bin    string
	dir    string
	as     *syscall.Credential
	keeper *keeper
}

// config is added to postgresql.conf of both. fsync is on, as it must be; the rest makes the servers small, and a standby that has lost its
// primary look for it soon.
const config = `
listen_addresses = '127.0.0.1'
unix_socket_directories = '%s'
port = %d
fsync = on
shared_buffers = 32MB
max_connections = 60
max_wal_senders = 6
wal_keep_size = 64MB
max_wal_size = 512MB
wal_retrieve_retry_interval = 100ms
log_line_prefix = ''
`

// standbyName is the name of the standby in synchronous_standby_names.
const standbyName = "standby"

// Start makes a pair with the programs in the directory bin and starts it. It takes some seconds.
func Start(bin string) (*Pair, error) {
	p := &Pair{bin: bin}
	if err := p.start(); err != nil {
		if p.keeper != nil {
			_ = p.keeper.end() // the error before it is the one that matters
		}
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	return p, nil
}

// Close ends both servers and removes their directory.
func (p *Pair) Close() error { return p.keeper.end() }

func (p *Pair) start() (err error) {
	if p.as, err = account(); err != nil {
		return err
	}
	if err := p.makeDir(); err != nil {
		return err
	}
	if p.Primary, err = p.server("primary"); err != nil {
		return err
	}
	if p.Standby, err = p.server("standby"); err != nil {
		return err
	}
	if err := p.run("initdb", "-D", p.Primary.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		return err
	}
	if err := p.Primary.configure(""); err != nil {
		return err
	}
	if err := p.Primary.Start(); err != nil {
		return err
	}
	return p.follow()
}

// follow makes the standby of the primary and waits until it streams. From then on the primary waits for it.
func (p *Pair) follow() error {
	from := fmt.Sprintf("host=127.0.0.1 port=%d user=postgres application_name=%s", p.Primary.Port, standbyName)
	if err := p.run("pg_basebackup", "-D", p.Standby.data, "-d", from, "-X", "stream", "-c", "fast", "--no-sync"); err != nil {
		return err
	}
	if err := p.Standby.configure(fmt.Sprintf("primary_conninfo = '%s'\n", from)); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.Standby.data, "standby.signal"), nil, 0o644); err != nil {
		return err
	}
	if err := p.Standby.Start(); err != nil {
		return err
	}
	if err := p.Standby.WaitStreaming(); err != nil {
		return err
	}
	return p.Primary.Set("synchronous_standby_names", standbyName)
}

// makeDir makes the directory of the pair, which the user of the servers can enter.
func (p *Pair) makeDir() (err error) {
	if p.dir, err = os.MkdirTemp("", "holdfast-pg"); err != nil {
		return err
	}
	if p.dir, err = filepath.EvalSymlinks(p.dir); err != nil { // as /proc shows it
		return err
	}
	if p.keeper, err = keep(p.dir); err != nil {
		return err
	}
	return p.give(p.dir)
}

// give hands a file to the user of the servers.
func (p *Pair) give(path string) error {
	if p.as == nil {
		return nil
	}
	return os.Chown(path, int(p.as.Uid), int(p.as.Gid))
}

func (p *Pair) server(name string) (*Server, error) {
	port, err := freePort()
	return &Server{Port: port, pair: p, name: name, data: filepath.Join(p.dir, name)}, err
}

// configure adds the common settings and more.
func (s *Server) configure(more string) error {
	f, err := os.OpenFile(filepath.Join(s.data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, config+more, s.pair.dir, s.Port); err != nil {
		return err
	}
	return f.Close()
}

// run runs a program of PostgreSQL to its end.
func (p *Pair) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	cmd.Dir = p.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// The ports are below those that the system gives to outgoing connections, so that none of them takes the port of a server that is down.
const firstPort, lastPort = 20000, 30000

// freePort returns a port of 127.0.0.1 that nothing listens on. Processes begin to look at different ones.
func freePort() (int, error) {
	for range lastPort - firstPort {
		port := firstPort + int(nextPort.Add(1))%(lastPort-firstPort)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free", firstPort, lastPort)
}
