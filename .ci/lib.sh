# Functions that .ci/run and scripts/prove share. Both source this file in the
# repository's root.

# -trimpath makes clones in different directories share the build cache. The step
# vet covers more than the vetting of go test. C code (zstd) isn't optimized,
# because compiling it would take longer than all of its runs.
export GOFLAGS='-trimpath -vet=off' CGO_CFLAGS=-O0

# alone_in runs a command in each of the given modules' directories, without go.work.
alone_in() {
  local dir dirs=$1
  shift
  for dir in $dirs; do
    (cd "$dir" && GOWORK=off "$@")
  done
}

modules='. server storage/shardlog/pglog bench tools'
joined='./... ./server/... ./storage/shardlog/pglog/...' # the modules of go.work

# failures prints what the failed tests of a log said, without their hosts' logs,
# to repeat it at the end of the output.
failures() {
  printf '\n== failed tests\n'
  awk '/^ *--- FAIL|^panic:|^fatal error:|^WARNING: DATA RACE/ { on = 40 }
    /^ok|^ *--- (PASS|SKIP)|^=== RUN/ { on = 0 }
    on > 0 && !/(DEBUG|INFO|WARN|ERROR) / { print; on-- }' "$1"
}

# logged runs a command, and if it fails prints its failed tests once more.
logged() {
  local log status=0
  log=$(mktemp)
  "$@" 2>&1 | tee "$log" || status=1
  [ "$status" = 0 ] || failures "$log"
  rm -f "$log"
  return "$status"
}

# together runs functions side by side, because each waits for half of its time. It
# prints the output of each when all have ended.
together() {
  local f i status=0 dir pids=() names=("$@")
  dir=$(mktemp -d)
  for f in "$@"; do
    "$f" >"$dir/$f" 2>&1 &
    pids+=($!)
  done
  for i in "${!pids[@]}"; do
    wait "${pids[$i]}" || status=1
    cat "$dir/${names[$i]}"
  done
  rm -r "$dir"
  return "$status"
}

# installs names the Debian packages that the machine lacks.
installs() {
  local pair
  for pair in gcc:gcc gcc:libc6-dev chromium:chromium promtool:prometheus prometheus:prometheus python3:python3 git:git; do
    command -v "${pair%:*}" >/dev/null || echo "${pair#*:}"
  done
  ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || echo postgresql-common postgresql
}

# install_programs installs what tests need, without starting a service, and downloads
# the modules.
install_programs() {
  local packages policy=/usr/sbin/policy-rc.d made=""
  packages=$(installs | xargs)
  if [ -n "$packages" ]; then
    if [ ! -e "$policy" ]; then
      made=$policy
      printf '#!/bin/sh\nexit 101\n' >"$policy"
      chmod +x "$policy"
    fi
    apt-get update -q
    case $packages in *postgresql*)
      DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends postgresql-common
      printf 'create_main_cluster = false\n' >>/etc/postgresql-common/createcluster.conf
      ;;
    esac
    # shellcheck disable=SC2086 # one package a word
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $packages
    [ -z "$made" ] || rm "$made"
  fi
  alone_in "$modules" go mod download
}

# Simulated crashes run one task at a time, so there is nothing to race in them.
simulated='Crash|^TestRandom|RefusedWriteEndsTheTurn|FullOutbox|ToCodeThatComesBack|ToADeletedReceiver|BesideSenders'

# fuzz_for runs a fuzz target for some seconds, guided by the coverage of our own
# packages. Before Go 1.27 the end of the time can race with the workers and be
# reported as a failure of its own (go.dev/issue/75804): exactly that, with no
# failing input written, passes.
fuzz_for() {
  local seconds=$1 package=$2 name=$3 dir out
  dir=$(mktemp -d)
  (cd "$package" && go test -c -ldflags='-s -w' -gcflags='github.com/holdfast-dev/holdfast/...=-d=libfuzzer' -o "$dir/fuzz.test" .)
  out=$(cd "$package" && "$dir/fuzz.test" -test.run '^$' -test.fuzz "^$name\$" -test.fuzztime "${seconds}s" -test.fuzzcachedir "$dir/corpus" 2>&1) || {
    if grep -q 'Failing input written' <<<"$out" ||
      ! grep -A1 -- "^--- FAIL: $name " <<<"$out" | grep -qE '^ +context deadline exceeded$'; then
      echo "$out"
      return 1
    fi
  }
  grep -E '^fuzz: elapsed' <<<"$out" | tail -n 1
  rm -r "$dir"
}
