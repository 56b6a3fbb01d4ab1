# Sourced by run.sh and by the run.sh of each peer. What run.sh exports:
#   TMP      a directory of our own, removed at the end
#   FIGURES  the file to which figures are appended
#   LOAD     flags of the Go programs that say how much to do
#   SECONDS_EACH  the same for what is no Go program of ours
#   ALARMS_FEW    number of alarms of a peer that cannot have as many; 0: as many
#   LEAD_LONG     for a peer that takes long to arm its alarms
#   STEPS_FEW     number of steps of a workflow of a peer that is slow; 0: as many

BIN=$TMP/bin
servers=() # the process ids of what this shell has started

# missing ends a peer's run.sh: the peer cannot be installed here, and why.
missing() {
  printf '%s\n' "$*" >"$TMP/reason"
  exit 1
}

# debian installs a package unless the command is there.
debian() {
  local command=$1 package=$2
  command -v "$command" >/dev/null && return
  [ "$(id -u)" = 0 ] || missing "there is no $command; run as root, or install the Debian package $package"
  echo "install the Debian package $package" >&2
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$package"; } \
    >"$TMP/apt.log" 2>&1 || missing "the Debian package $package cannot be installed: $(tail -n 1 "$TMP/apt.log")"
}

# npm_package installs the dependencies of ./package.json in $TMP/npm/NAME.
npm_package() {
  local to=$TMP/npm/$1
  [ ! -d "$to/node_modules" ] || return 0
  debian npm npm
  mkdir -p "$to"
  cp package.json "$to/"
  npm install --prefix "$to" --ignore-scripts --no-audit --no-fund >"$TMP/npm.log" 2>&1 ||
    missing "npm cannot install it: $(grep -m 1 'npm error' "$TMP/npm.log" || tail -n 1 "$TMP/npm.log")"
}

# build builds the program of a folder, once a run.
build() {
  [ -x "$BIN/$1" ] || (cd "$HERE/$1" && go build -o "$BIN/$1" .) 2>"$TMP/build.log" ||
    missing "the program cannot be built: $(tail -n 1 "$TMP/build.log")"
}

# free_port sets PORT to one on which no process listens, another one each time.
chosen=" "
free_port() {
  for _ in $(seq 100); do
    PORT=$((20000 + RANDOM % 10000))
    [[ $chosen != *" $PORT "* ]] || continue
    (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null || { chosen+="$PORT " && return; }
  done
  missing "no free port on loopback"
}

# serve starts a server whose output goes to $TMP/NAME.log, to be stopped when
# this shell ends.
serve() {
  local name=$1
  shift
  "$@" >"$TMP/$name.log" 2>&1 &
  servers+=($!)
}

# listening waits until the last server that was started listens on a port.
listening() {
  local name=$1 port=$2
  for _ in $(seq 300); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return; fi
    kill -0 "${servers[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  missing "$name does not start: $(tail -n 1 "$TMP/$name.log")"
}

# stop_servers stops what this shell has started, by id, the last first.
stop_servers() {
  local i
  for ((i = ${#servers[@]} - 1; i >= 0; i--)); do
    kill -INT "${servers[i]}" 2>/dev/null || true
    for _ in $(seq 100); do
      kill -0 "${servers[i]}" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "${servers[i]}" 2>/dev/null || true
    wait "${servers[i]}" 2>/dev/null || true
  done
  servers=()
}

# peer begins a run.sh: its servers end with it.
peer() {
  trap stop_servers EXIT
  trap 'exit 143' TERM
  trap 'exit 130' INT
}

# measure runs a program for one system: measure PROGRAM SYSTEM DURABILITY OVER [flag ...]
measure() {
  local program=$1 system=$2 durability=$3 over=$4
  shift 4
  # shellcheck disable=SC2086 # LOAD is one flag a word
  "$BIN/$program" -figures "$FIGURES" -system "$system" -durability "$durability" -over "$over" $LOAD "$@"
}

# figure appends a figure of what no program of ours measured.
figure() {
  local workload=$1 n=$2 value=$3 system=$4 durability=$5
  [ -n "$value" ] || missing "no figure for $workload of $n"
  printf '{"workload":"%s","n":%d,"value":%s,"system":"%s","durability":"%s","over":"TCP"}\n' \
    "$workload" "$n" "$value" "$system" "$durability" >>"$FIGURES"
}

# version keeps what was measured, for the end of the table.
version() { printf '%s\n' "$*" >>"$TMP/versions"; }
