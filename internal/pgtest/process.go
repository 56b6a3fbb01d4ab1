package pgtest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// keeperScript ends every process that works below the directory $1, and removes it, once its standard input ends. Each process of PostgreSQL
// works in its data directory. It looks again until it finds none, because a process may have started another one.
const keeperScript = `
read -r _
found=yes
while [ "$found" ]; do
	found=
	for p in /proc/[0-9]*; do
		case "$(readlink "$p/cwd" 2>/dev/null)" in
		"$1"/*) kill -9 "${p#/proc/}" 2>/dev/null && found=yes ;;
		esac
	done
done
rm -rf "$1"`

// keeper is a process that cleans up after the pair when this process ends or lets go.
type keeper struct {
	cmd *exec.Cmd
	in  io.Closer
}

func keep(dir string) (*keeper, error) {
	cmd := exec.Command("/bin/sh", "-c", keeperScript, "sh", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that Ctrl-C does not end it too
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("pgtest: start the keeper of %s: %w", dir, err)
	}
	return &keeper{cmd, in}, nil
}

// end cleans up and waits until that is done.
func (k *keeper) end() error {
	_ = k.in.Close() // its end is the sign
	return k.cmd.Wait()
}

// account is the user that the servers run as; nil is the user of this process.
func account() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("pgtest: PostgreSQL does not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// processes are the ids of the processes that work in a directory.
func processes(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is right
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == dir {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// signal sends a signal to all processes that work in a directory, until it finds no new one.
func signal(dir string, s syscall.Signal) {
	sent := map[int]bool{}
	for again := true; again; {
		again = false
		for _, pid := range processes(dir) {
			if !sent[pid] {
				_ = syscall.Kill(pid, s) // it may have ended
				sent[pid], again = true, true
			}
		}
	}
}
