#!/usr/bin/env bash
# Ours.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../lib.sh
build holdfast
rm -rf "$TMP/holdfast"
measure holdfast Holdfast "each commit, shared by those that wait" "in process" -dir "$TMP/holdfast" -also "$ALARMS_FEW" -few "$STEPS_FEW"
