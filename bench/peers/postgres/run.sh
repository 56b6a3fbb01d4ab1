#!/usr/bin/env bash
# A counter as a row of PostgreSQL, driven by its own pgbench.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../lib.sh
. ./server.sh
peer
postgres_server
at=(-h 127.0.0.1 -p "$PORT" -U postgres)
"$PG/psql" "${at[@]}" -q -c 'CREATE TABLE counter (id int PRIMARY KEY, n bigint) WITH (fillfactor=50)' \
  -c 'INSERT INTO counter SELECT i, 0 FROM generate_series(1, 1000) i'
for keys in 1 1000; do
  printf '\\set i random(1, %d)\nUPDATE counter SET n = n + 1 WHERE id = :i RETURNING n;\n' "$keys" >"$TMP/increment.sql"
  "$PG/pgbench" "${at[@]}" -n -M prepared -c 64 -j 1 -T "$SECONDS_EACH" -f "$TMP/increment.sql" postgres >"$TMP/pgbench.log" 2>&1
  figure increments "$keys" "$(awk '/^tps/ {print $3}' "$TMP/pgbench.log")" \
    "PostgreSQL row" "each commit, shared by those that wait (defaults)"
done
