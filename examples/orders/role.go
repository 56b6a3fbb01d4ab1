package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
)

// role is the hidden first argument by which the program is one of its own children.
type role string

const (
	worker        role = "worker"
	paymentServer role = "payment-server"
)

// listenDescriptor is the listener of the payment server: each child has the standard
// descriptors 0 to 2, and 3 is the lock of the directory.
const listenDescriptor = 4

// play is main of a child. Its second argument is its configuration.
func play(r role, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	signal.Ignore(os.Interrupt) // because Ctrl-C reaches all processes of a terminal, and the program ends its children itself
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := playRole(ctx, r, args, stdin, teller(stdout)); err != nil {
		fmt.Fprintln(stderr, err)
		return exitError
	}
	return 0
}

func playRole(ctx context.Context, r role, args []string, stdin io.Reader, tell func(event)) error {
	if len(args) != 1 {
		return fmt.Errorf("%s is a role for the children of this program: run it without arguments (-h helps)", r)
	}
	if r == worker {
		var c workerConfig
		if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
			return err
		}
		return work(ctx, c, stdin, tell)
	}
	var c paymentsConfig
	if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
		return err
	}
	file := os.NewFile(listenDescriptor, "listener")
	l, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("the listener of the payment server: %w", err)
	}
	if err := file.Close(); err != nil {
		return err
	}
	ctx, cancel := untilEnd(ctx, stdin, func([]byte) {})
	defer cancel()
	return servePayments(ctx, c, l, tell)
}
