#!/usr/bin/env bash
# Runs the same workloads on Holdfast and on its peers, in one run, and prints one
# table and writes out/peers.json: bash bench/peers/run.sh [-quick] [-rounds N] [peer ...]
# See README.md.
set -euo pipefail
export GOWORK=off # because no peer is a module of the workspace
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
known=(river postgres asynq redis workerd restate temporal)

usage() {
  cat <<TEXT
usage: run.sh [-quick] [-rounds N] [peer ...]

  -quick      each workload for a second or so, one round: shows that it works
  -rounds N   of all systems in turn; the figure is the median (default 3)

Peers: ${known[*]} (default all)
TEXT
}

quick= rounds=3 json=$HERE/../../out/peers.json peers=()
while [ $# -gt 0 ]; do
  case $1 in
  -quick) quick=1 ;;
  -rounds) rounds=${2:?-rounds needs a number} && shift ;;
  -h | -help | --help) usage && exit ;;
  -*) usage >&2 && exit 2 ;;
  *)
    [[ " ${known[*]} " == *" $1 "* ]] || { echo "run.sh: there is no peer $1" >&2 && usage >&2 && exit 2; }
    peers+=("$1")
    ;;
  esac
  shift
done
[ ${#peers[@]} -gt 0 ] || peers=("${known[@]}")

# An object of workerd that is resident holds several files, so it has fewer alarms. A
# workflow of Temporal takes long for a step, so it has fewer steps.
SECONDS_EACH=5 ALARMS_FEW=4000 LEAD_LONG=60s STEPS_FEW=50 most=900
LOAD="-for 5s -jobs 20000 -alarms 10000 -lead 12500ms -alone 1000 -steps 500 -runs 1024"
if [ -n "$quick" ]; then
  SECONDS_EACH=1 ALARMS_FEW=0 LEAD_LONG=20s STEPS_FEW=0 rounds=1 most=180
  LOAD="-for 1s -jobs 2000 -alarms 1000 -lead 7500ms -alone 50 -steps 10 -runs 64"
fi

TMP=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-peers-XXXXXX")
chmod 755 "$TMP" # PostgreSQL does not run as root
FIGURES=$TMP/figures
export HERE TMP FIGURES LOAD SECONDS_EACH ALARMS_FEW LEAD_LONG STEPS_FEW
export GOWORK=off # the versions that the modules of the peers name, whatever a workspace needs
child=

# finish stops the peer that runs, whose servers end with it, and removes all.
finish() {
  if [ -n "$child" ]; then
    kill "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
  fi
  rm -rf "$TMP"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir -p "$TMP/bin"
(cd "$HERE" && go build -o "$TMP/bin/" ./table ./disk)
printf '' >"$FIGURES"
declare -A failed=()

# script runs a script of a system, SECONDS at most: script SYSTEM SCRIPT SECONDS. Its
# output goes to a log, shown if it fails.
script() {
  rm -f "$TMP/reason"
  timeout -k 30 "$3" bash "$HERE/$1/$2" >"$TMP/$1.out" 2>&1 &
  child=$!
  local code=0
  wait "$child" || code=$?
  child=
  [ "$code" -ne 0 ] || return 0
  if [ -s "$TMP/reason" ]; then
    failed[$1]=$(cat "$TMP/reason")
  elif [ "$code" -eq 124 ]; then
    failed[$1]="$2 not done after $3 seconds"
  else
    failed[$1]="failed: $(tail -n 3 "$TMP/$1.out" | tr '\n' ' ')"
  fi
  echo "NOT MEASURED, or not wholly: $1: ${failed[$1]}" >&2
}

# measured runs a system once.
measured() {
  # shellcheck disable=SC2086 # LOAD is one flag a word
  "$TMP/bin/disk" -dir "$TMP" -figures "$FIGURES" -system "before $1" -durability each -over direct $LOAD
  script "$1" run.sh "$most"
}

for system in "${peers[@]}"; do
  [ ! -f "$HERE/$system/install.sh" ] || { echo "install: $system" >&2 && script "$system" install.sh 1800; }
done
for round in $(seq "$rounds"); do
  for system in holdfast "${peers[@]}"; do
    [ -z "${failed[$system]:-}" ] || continue
    echo "round $round of $rounds: $system" >&2
    measured "$system"
  done
done

echo "$(uname -s) $(uname -m), $(nproc) CPUs, $(cd "$HERE" && go env GOVERSION), $(date -u +%F), rounds: $rounds${quick:+, -quick: the figures mean little}"
echo "In process against a server is no like for like: a call of ours crosses no socket."
mkdir -p "${json%/*}"
"$TMP/bin/table" -figures "$FIGURES" -json "$json"
echo
[ ! -s "$TMP/versions" ] || sort -u "$TMP/versions" | sed 's/^/version: /'
for system in "${!failed[@]}"; do echo "not measured, or not wholly: $system: ${failed[$system]}"; done
echo "written: $json"
[ -z "${failed[holdfast]:-}" ] # without ours nothing was compared
