package main

import (
	"context"
	"errors"
	"io"
)

func runScale(ctx context.Context, args []string, out, log io.Writer) error {
	return errors.New("scale: not here yet")
}
