# Sourced: starts PostgreSQL with its defaults, a new cluster on $PORT of loopback.
# Sets PG, the directory of its programs. It refuses to run as root.
postgres_bin() {
  PG=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
}

postgres_server() {
  postgres_bin
  [ -n "$PG" ] || debian postgres postgresql
  postgres_bin
  [ -n "$PG" ] || missing "no PostgreSQL in the place of Debian's packages"
  local data=$TMP/postgres as=()
  rm -rf "$data"
  mkdir -p "$data"
  if [ "$(id -u)" = 0 ]; then
    id postgres >/dev/null 2>&1 || missing "there is no user postgres, and PostgreSQL does not run as root"
    chown postgres "$data"
    as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
  fi
  (cd "$data" && "${as[@]}" "$PG/initdb" -D "$data/cluster" -A trust -U postgres) >"$TMP/initdb.log" 2>&1 ||
    missing "initdb: $(tail -n 1 "$TMP/initdb.log")"
  free_port
  serve postgres "${as[@]}" "$PG/postgres" -D "$data/cluster" -p "$PORT" -h 127.0.0.1 -k ""
  listening postgres "$PORT"
  for _ in $(seq 100); do
    "$PG/pg_isready" -q -h 127.0.0.1 -p "$PORT" && break
    sleep 0.1
  done
  version "$("$PG/postgres" --version)"
}
