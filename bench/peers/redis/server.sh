# Sourced: starts Redis with an append-only file, on $PORT of loopback. The first
# argument is its appendfsync.
redis_server() {
  debian redis-server redis-server
  local data=$TMP/redis
  rm -rf "$data"
  mkdir -p "$data"
  free_port
  serve redis redis-server --port "$PORT" --bind 127.0.0.1 --dir "$data" --save '' --appendonly yes --appendfsync "$1"
  listening redis-server "$PORT"
  version "$(redis-server --version | cut -d ' ' -f 1-3)"
}

# synced says what an appendfsync means.
synced() {
  case $1 in
  always) echo "each write, shared by a round of the event loop" ;;
  everysec) echo "each second: a power cut loses the answers since" ;;
  esac
}
