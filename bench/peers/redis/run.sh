#!/usr/bin/env bash
# A counter as a key of Redis, driven by its own redis-benchmark.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../lib.sh
. ./server.sh
peer
for mode in always everysec; do
  redis_server "$mode"
  for keys in 1 1000; do
    # It knows a number only, not a time.
    redis-benchmark -h 127.0.0.1 -p "$PORT" -c 64 -n $((SECONDS_EACH * 60000)) -r "$keys" --csv INCR key:__rand_int__ >"$TMP/redis-benchmark.log"
    figure increments "$keys" "$(tail -n 1 "$TMP/redis-benchmark.log" | tr -d '"' | cut -d , -f 2)" \
      "Redis INCR, appendfsync $mode" "$(synced "$mode")"
  done
  stop_servers
done
