package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
)

// nextPort counts the ports that were looked at.
var nextPort atomic.Int64

func init() { nextPort.Store(int64(os.Getpid()) * 7) }

// DSN leads to servers or proxies by their ports, in this order, as the user postgres.
func DSN(ports ...int) string {
	hosts, list := make([]string, len(ports)), make([]string, len(ports))
	for i, port := range ports {
		hosts[i], list[i] = "127.0.0.1", fmt.Sprint(port)
	}
	return fmt.Sprintf("host=%s port=%s user=postgres dbname=postgres sslmode=disable", strings.Join(hosts, ","), strings.Join(list, ","))
}

// Addr is the address of the server for package net.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// argument is the name of an argument in a statement.
var argument = regexp.MustCompile(`\$(\d+)`)

// Ask runs a statement in a session of its own and returns the first column of its first row as psql writes it, so t and f for a
// boolean, or "" if it has none. The statement names its arguments $1, $2 and so on.
func (s *Server) Ask(sql string, args ...any) (string, error) {
	list := []string{"-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-d", DSN(s.Port)}
	for i, arg := range args {
		list = append(list, "-v", fmt.Sprintf("%d=%v", i+1, arg))
	}
	cmd := exec.Command(filepath.Join(s.pair.bin, "psql"), list...)
	cmd.Stdin = strings.NewReader(argument.ReplaceAllString(sql, ":'$1'") + ";") // the option -c would not put in the arguments
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failed.Stderr)))
		}
		return "", fmt.Errorf("pgtest: %s: %w", sql, err)
	}
	row, _, _ := strings.Cut(string(out), "\n")
	first, _, _ := strings.Cut(row, "\t")
	return first, nil
}

// Set changes a setting of the server and waits until new sessions have it. It waits for no standby.
func (s *Server) Set(name, value string) error {
	for _, sql := range []string{
		fmt.Sprintf("alter system set %s = '%s'", name, value),
		"select pg_reload_conf()",
	} {
		if _, err := s.Ask(sql); err != nil {
			return fmt.Errorf("pgtest: set %s: %w", name, err)
		}
	}
	return s.waitFor("select setting = $2 from pg_settings where name = $1", name, value)
}

// WaitStreaming waits until the standby receives the log of its primary.
func (s *Server) WaitStreaming() error {
	return s.waitFor("select exists (select from pg_stat_wal_receiver where status = 'streaming')")
}

// waitFor asks until the answer is true. Each question is a new session, which takes some milliseconds.
func (s *Server) waitFor(sql string, args ...any) error {
	for {
		got, err := s.Ask(sql, args...)
		if err != nil || got == "t" {
			return err
		}
	}
}
