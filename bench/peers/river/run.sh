#!/usr/bin/env bash
# River on a PostgreSQL server with its defaults.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../lib.sh
. ../postgres/server.sh
peer
build river
postgres_server
version "River $(cd .. && go list -m -f '{{.Version}}' github.com/riverqueue/river)"
database=postgres://postgres@127.0.0.1:$PORT/postgres
synced="each commit (PostgreSQL's defaults)"
measure river "River, defaults" "$synced" TCP -database "$database"
measure river "River, tuned" "$synced" TCP -database "$database" -tuned
