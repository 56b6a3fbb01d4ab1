#!/usr/bin/env bash
# Kills the ingest example with -9 at random instants over several runs, and compares
# its totals with those of find and wc:
#
#   scripts/ingest-kill.sh -n 30                # the toolchain's whole source tree
#   scripts/ingest-kill.sh -n 6 -src DIR -seed 42
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec go run ./internal/prove/killtest "$@"
