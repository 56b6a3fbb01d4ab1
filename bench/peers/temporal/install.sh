#!/usr/bin/env bash
# Builds Temporal's server, its tool for schemas and our program. The server takes minutes
# the first time, so this is no part of run.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../lib.sh
build temporal
go build -o "$BIN/temporal-server" go.temporal.io/server/cmd/server 2>"$TMP/build.log" &&
  go build -o "$BIN/temporal-sql-tool" go.temporal.io/server/cmd/tools/sql 2>"$TMP/build.log" ||
  missing "Temporal's server cannot be built: $(tail -n 1 "$TMP/build.log")"
