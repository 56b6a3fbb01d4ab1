#!/usr/bin/env bash
# Cloudflare's workerd: Durable Objects on its local disk, over HTTP.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../lib.sh
peer
build httpload
npm_package workerd
workerd=$(find "$TMP/npm/workerd/node_modules/@cloudflare" -path '*/bin/workerd' -type f 2>/dev/null | head -n 1)
[ -n "$workerd" ] || missing "npm has no workerd for this machine"
version "$("$workerd" --version)"

ulimit -n "$(ulimit -Hn)" # a resident object holds several files
rm -rf "$TMP/workerd"
mkdir -p "$TMP/workerd"
free_port
serve workerd "$workerd" serve config.capnp -d "disk=$TMP/workerd" -s "http=127.0.0.1:$PORT"
listening workerd "$PORT"
few=() # objects with an alarm, each a database: they take long to make
[ "$ALARMS_FEW" = 0 ] || few=(-alarms "$ALARMS_FEW")
at=http://127.0.0.1:$PORT
measure httpload "workerd" "each write of an object (one fsync each)" HTTP "${few[@]}" -lead "$LEAD_LONG" \
  -increment "$at/increment/{i}" -arm "$at/arm/{i}/{due}" -late "$at/late"
