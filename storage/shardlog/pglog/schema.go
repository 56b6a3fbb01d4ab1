package pglog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// version is the version of the tables. Programs of another one refuse them.
const version = 1

// schemaSQL makes the tables. Rows of shard and node are updated all the time: they have room to stay in their page, and vacuum comes early.
// Payloads and parts are stored as they are, because they are compressed before or not at all. A part belongs to one upload, the
// call of Put that has stored it. The blob of an upload has its row from the begin, and is whole at the end.
const schemaSQL = `
create schema if not exists {schema};
create table if not exists {cluster} (id text not null, version int not null);
create table if not exists {shard} (
	id int primary key, term bigint not null, owner text not null, wanted text, first bigint not null default 1, last bigint not null default 0,
	chain bigint not null default 0, written bigint not null default 0, beat bigint not null default 0, lost text, late text)
	with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create table if not exists {log} (
	shard int not null, at bigint not null, term bigint not null, chain bigint not null, rec bytea not null, primary key (shard, at))
	with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
		toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 1000);
alter table {log} alter column rec set storage external;
create sequence if not exists {incarnation};
create table if not exists {node} (
	id text collate "C" primary key, incarnation bigint not null, addr text not null, version bigint not null, draining boolean not null,
	beat bigint not null, at timestamptz not null)
	with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create table if not exists {snapshot} (
	shard int not null, last bigint not null, chain bigint not null, manifest bytea not null, blobs text[] collate "C" not null,
	primary key (shard, last))
	with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create table if not exists {blob} (
	shard int not null, upload bigint not null, name text collate "C" not null, whole boolean not null default false,
	bytes bigint not null default 0, primary key (shard, upload))
	with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create unique index if not exists blob_name on {blob} (shard, name) where whole;
create table if not exists {part} (
	shard int not null, upload bigint not null, part bigint not null, data bytea not null, primary key (shard, upload, part))
	with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
		toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 1000);
alter table {part} alter column data set storage external;`

// statements are the statements of a log, with the names of its tables.
type statements struct {
	schema, init, cluster, append, head, claim, read, truncate, delete, lock string

	beat, incarnation, look, forget                   string // of nodes
	begin, register, snapshots                        string
	quarantine, noteLate, putBack, recover, unplaced  string // of losses
	start, part, finish, get, list, collect, leftover string // of blobs
}

func newStatements(o Options) statements {
	in := o.names()
	return statements{
		schema: in(schemaSQL), init: in(`insert into {cluster} (id, version) values ($1, $2)`), cluster: in(`select id, version from {cluster}`),
		append: in(appendSQL), head: in(headSQL), claim: in(claimSQL), read: in(readSQL), truncate: in(truncateSQL), delete: in(deleteSQL),
		lock: in(lockSQL),

		beat: in(beatSQL), incarnation: in(`{incarnation}`), look: in(lookSQL), forget: in(forgetSQL),
		begin: in(beginSQL), register: in(registerSQL), snapshots: in(snapshotsSQL),
		quarantine: in(quarantineSQL), noteLate: in(noteLateSQL), putBack: in(putBackSQL), recover: in(recoverSQL), unplaced: in(unplacedSQL),
		start: in(startSQL), part: in(partSQL), finish: in(finishSQL), get: in(getSQL), list: in(listSQL), collect: in(collectSQL),
		leftover: in(leftoverSQL),
	}
}

// names returns a function that puts the names of the tables into a statement.
func (o Options) names() func(sql string) string {
	quoted := func(name ...string) string { return pgx.Identifier(name).Sanitize() }
	pairs := []string{"{schema}", quoted(o.Schema)}
	for _, name := range []string{"cluster", "shard", "log", "incarnation", "node", "snapshot", "blob", "part"} {
		pairs = append(pairs, "{"+name+"}", quoted(o.Schema, name))
	}
	return strings.NewReplacer(pairs...).Replace
}

// Init makes the schema and its tables, if they are not there, and draws the id of the cluster. It returns nil if they are there
// already, in the version of this program. It waits for another Init, and 200 ms at most for each lock of a table. The role needs the right to create
// a schema in the database; afterwards, one that Open uses needs only the rights to the tables.
func Init(ctx context.Context, options Options) error {
	l, err := prepare(options)
	if err != nil {
		return err
	}
	defer l.Close()
	err = l.control.run(ctx, func(ctx context.Context, c *conn) error {
		return pgx.BeginFunc(ctx, c.Conn, func(tx pgx.Tx) error { return l.create(ctx, tx) })
	})
	if err != nil {
		return fmt.Errorf("pglog: make schema %s: %w", l.o.Schema, err)
	}
	return nil
}

// create makes the tables that are missing. Two programs do not make them at once, because the first statement takes a lock of the schema's
// name; appends do not wait behind the others, because those give up soon.
func (l *Log) create(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('holdfast'), hashtext($1))`, l.o.Schema); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `set local lock_timeout = '200ms'`); err != nil {
		return err
	}
	if _, err := l.identify(ctx, tx); !errors.Is(err, errNoSchema) {
		return err
	}
	if _, err := tx.Exec(ctx, l.sql.schema); err != nil {
		return err
	}
	draw := l.o.Seams.Rand
	_, err := tx.Exec(ctx, l.sql.init, fmt.Sprintf("%016x%016x", draw.Uint64(), draw.Uint64()), version)
	return err
}

var errNoSchema = errors.New("no log is there: make it with Init")

// querier is a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// identify returns the id of the cluster in the schema, if its tables have the version of this program.
func (l *Log) identify(ctx context.Context, q querier) (id string, err error) {
	var there bool
	if err := q.QueryRow(ctx, `select to_regclass($1) is not null`, l.o.names()("{cluster}")).Scan(&there); err != nil {
		return "", err
	}
	if !there {
		return "", fmt.Errorf("schema %s: %w", l.o.Schema, errNoSchema)
	}
	var found int
	if err := q.QueryRow(ctx, l.sql.cluster).Scan(&id, &found); err != nil {
		return "", fmt.Errorf("schema %s: %w", l.o.Schema, err)
	}
	if found != version {
		return "", fmt.Errorf("schema %s has version %d, this program reads version %d: use a program of that version", l.o.Schema, found, version)
	}
	return id, nil
}
