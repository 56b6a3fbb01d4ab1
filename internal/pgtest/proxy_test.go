package pgtest

import (
	"bufio"
	"io"
	"net"
	"syscall"
	"testing"
)

// message is one message of the protocol.
func message(kind byte, body string) []byte {
	return append([]byte{kind, 0, 0, 0, byte(4 + len(body))}, body...)
}

// A direction that is held passes nothing on and closes nothing, and what was held arrives when it is free again.
func TestHold(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p, err := NewProxy(&Server{Port: server.Addr().(*net.TCPAddr).Port})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	client, err := net.Dial("tcp", (&Server{Port: p.Port}).Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	behind, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer behind.Close()
	send := func(to io.Writer, m []byte) {
		t.Helper()
		if _, err := to.Write(m); err != nil {
			t.Fatal(err)
		}
	}
	at := map[io.Reader]*bufio.Reader{client: bufio.NewReader(client), behind: bufio.NewReader(behind)}
	want := func(from io.Reader, m []byte) {
		t.Helper()
		got := make([]byte, len(m))
		if _, err := io.ReadFull(at[from], got); err != nil || string(got) != string(m) {
			t.Errorf("%q arrived, %v", got, err)
		}
	}
	send(client, message(0, "begin")[1:]) // the first message has no type
	want(behind, message(0, "begin")[1:])

	p.Hold(ToServer)
	send(client, message('Q', "ask"))
	send(behind, message('Z', "ready")) // the other direction is free
	want(client, message('Z', "ready"))
	stopped(t, p, behind)
	p.Free()
	want(behind, message('Q', "ask"))

	p.Hold(ToClient)
	send(behind, message('Z', "late"))
	stopped(t, p, client)
	p.Free()
	want(client, message('Z', "late"))
}

// stopped waits until a message is held, and fails the test if any of it is at the other end.
func stopped(t *testing.T, p *Proxy, to net.Conn) {
	t.Helper()
	p.WaitHeld(1)
	raw, err := to.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Read(func(fd uintptr) bool {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err != syscall.EAGAIN {
			t.Errorf("%d bytes, %v arrived through a direction that was held", n, err)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Close ends connections that are held.
func TestCloseWhileHeld(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p, err := NewProxy(&Server{Port: server.Addr().(*net.TCPAddr).Port})
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp", (&Server{Port: p.Port}).Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	p.Hold(ToServer, ToClient)
	if _, err := client.Write(message(0, "begin")[1:]); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if _, err := client.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
}
