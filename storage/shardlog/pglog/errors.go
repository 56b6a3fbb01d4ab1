package pglog

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

var (
	errClosed = fmt.Errorf("%w: the log is closed", shardlog.ErrUnknown)
	errSlow   = errors.New("PostgreSQL did not answer in time")
	errPooler = errors.New("connect to PostgreSQL itself, not to a pooler")
)

// outcome wraps the error of a statement in the error of package shardlog that tells its outcome. A statement that PostgreSQL itself
// has refused is aborted, so it stored nothing; but only some refusals last.
func outcome(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return unknown(err)
	}
	switch {
	case pg.Code == "53100":
		return fmt.Errorf("%w: %w", shardlog.ErrNoSpace, err)
	case refusals[pg.Code[:2]]:
		return fmt.Errorf("%w: %w: look at the tables of the schema and at the rights of the role", shardlog.ErrRefused, err)
	}
	return unknown(err)
}

// refusals are the classes of SQLSTATE that no repeat changes: data, integrity, and syntax or rights.
var refusals = map[string]bool{"22": true, "23": true, "42": true}

// unknown wraps an error in ErrUnknown, unless it tells the outcome by itself.
func unknown(err error) error {
	if told(err) {
		return err
	}
	return fmt.Errorf("%w: %w", shardlog.ErrUnknown, err)
}

// told reports whether an error has an outcome of package shardlog.
func told(err error) bool {
	for _, o := range []error{shardlog.ErrUnknown, shardlog.ErrRefused, shardlog.ErrNoSpace, shardlog.ErrFenced, shardlog.ErrTruncated, shardlog.ErrHole, shardlog.ErrMissing} {
		if errors.Is(err, o) {
			return true
		}
	}
	return false
}

// refused reports whether PostgreSQL has refused a statement, so that its connection is as good as before.
func refused(err error) bool {
	return errors.Is(err, shardlog.ErrRefused) || errors.Is(err, shardlog.ErrNoSpace)
}
