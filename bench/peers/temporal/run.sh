#!/usr/bin/env bash
# Temporal's server, on a file of SQLite and on PostgreSQL, with workflows of its Go SDK.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../lib.sh
. ../postgres/server.sh
. ./server.sh
peer
version "Temporal $("$BIN/temporal-server" --version | sed 's/.* //'), Go SDK $(go list -m -f '{{.Version}}' go.temporal.io/sdk)"

# load measures the servers that run: load SYSTEM DURABILITY
load() {
  local few=() # a step takes long, and 500 of them minutes
  [ "$STEPS_FEW" = 0 ] || few=(-steps "$STEPS_FEW")
  measure temporal "$1" "$2" gRPC "${few[@]}" -address "127.0.0.1:$frontend" -servers "$(IFS=, && echo "${servers[*]}")"
}

rm -rf "$TMP/temporal"
mkdir -p "$TMP/temporal"
temporal_server <<YAML
persistence:
  defaultStore: sqlite
  visibilityStore: sqlite
  numHistoryShards: 1
  datastores:
    sqlite:
      sql:
        pluginName: sqlite
        databaseName: $TMP/temporal/db
        connectAddr: localhost # asked for, and not used
        connectProtocol: tcp
        connectAttributes: {cache: private, setup: true, journal_mode: wal, synchronous: 2} # 2 is FULL
        maxConns: 1
        maxIdleConns: 1
        maxConnLifetime: 1h
YAML
load "Temporal on SQLite" "each commit (WAL, synchronous = FULL)"
stop_servers

postgres_server
postgres=$PORT
for name in temporal visibility; do
  tool=("$BIN/temporal-sql-tool" --pl postgres12 --ep 127.0.0.1 -p "$postgres" -u postgres --pw none --db "$name")
  { "${tool[@]}" create && "${tool[@]}" setup -v 0.0 && "${tool[@]}" update -s "postgresql/v12/$name"; } >"$TMP/schema.log" 2>&1 ||
    missing "no schema: $(tail -n 1 "$TMP/schema.log")"
done
store() {
  cat <<YAML
    $1:
      sql: {pluginName: postgres12, databaseName: $1, connectAddr: "127.0.0.1:$postgres", connectProtocol: tcp,
        user: postgres, password: none, maxConns: $2, maxIdleConns: $2, maxConnLifetime: 1h}
YAML
}
temporal_server <<YAML
persistence:
  defaultStore: temporal
  visibilityStore: visibility
  numHistoryShards: 4
  datastores:
$(store temporal 20)
$(store visibility 2)
YAML
load "Temporal on PostgreSQL" "each commit (PostgreSQL's defaults)"
