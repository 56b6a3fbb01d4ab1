#!/usr/bin/env bash
# asynq on a Redis server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../lib.sh
. ../redis/server.sh
peer
build asynq
version "asynq $(cd .. && go list -m -f '{{.Version}}' github.com/hibiken/asynq)"
for mode in always everysec; do
  redis_server "$mode"
  measure asynq "asynq, appendfsync $mode" "$(synced "$mode")" TCP -address "127.0.0.1:$PORT"
  stop_servers
done
