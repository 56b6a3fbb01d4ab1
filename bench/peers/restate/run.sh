#!/usr/bin/env bash
# A Restate server, over HTTP, with counters and workflows of its Go SDK.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../lib.sh
peer
build httpload
build restate
npm_package restate
restate=$(find "$TMP/npm/restate/node_modules/@restatedev" -path '*/bin/restate-server' -type f 2>/dev/null | head -n 1)
[ -n "$restate" ] || missing "npm has no restate-server for this machine"
version "$("$restate" --version)"
debian curl curl

ulimit -n "$(ulimit -Hn)"
free_port && service=$PORT
free_port && late=$PORT
free_port && node=$PORT
free_port && ingress=$PORT
free_port && admin=$PORT
cat >"$TMP/restate.toml" <<TOML
base-dir = "$TMP/restate"
bind-ip = "127.0.0.1"
bind-port = $node
advertised-host = "127.0.0.1"
listen-mode = "tcp"
disable-telemetry = true
log-filter = "warn"
[ingress]
bind-port = $ingress
[admin]
bind-port = $admin
TOML

# answers tries a request until the server is ready for it.
answers() {
  for _ in $(seq 150); do
    curl -sf -m 5 -o /dev/null "$@" && return
    sleep 0.2
  done
  missing "no answer from ${*: -1}"
}

# start starts the service and a server with an empty store.
start() {
  rm -rf "$TMP/restate"
  mkdir -p "$TMP/restate"
  serve service "$BIN/restate" -address "127.0.0.1:$service" -late "127.0.0.1:$late"
  listening service "$service"
  serve restate "$restate" -c "$TMP/restate.toml"
  listening restate "$admin"
  listening restate "$ingress"
  answers -H 'content-type: application/json' -d "{\"uri\":\"http://127.0.0.1:$service\"}" "http://127.0.0.1:$admin/deployments"
  answers -X POST "http://127.0.0.1:$ingress/Counter/first/Increment"
}

# load measures the server: load [flag ...]
load() {
  measure httpload "Restate" "each append to its log, in batches (defaults)" HTTP -method POST "$@"
}

start
at=http://127.0.0.1:$ingress/Counter/{i}
load -increment "$at/Increment" -arm "$at/Alarm/send?delay={delay}ms" -body '{due}' -late "http://127.0.0.1:$late/late"
stop_servers
start
load -run "http://127.0.0.1:$ingress/Steps/{id}/Run" -timer "http://127.0.0.1:$late/steps" -servers "$(IFS=, && echo "${servers[*]}")"
