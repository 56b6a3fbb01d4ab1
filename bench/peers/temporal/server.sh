# Sourced: starts Temporal's server. The settings, also those of the stores in run.sh, are of
# config/development-sqlite-file.yaml and config/development-postgres12.yaml of Temporal, but
# for ports, directories, archives and metrics.

# service prints the settings of a service: service NAME PORT
service() {
  free_port
  printf '  %s:\n    rpc: {grpcPort: %d, membershipPort: %d, bindOnLocalHost: true}\n' "$1" "$2" "$PORT"
}

# temporal_server starts a server with the settings of its store on the standard input, and
# sets frontend, the port for clients.
temporal_server() {
  free_port && frontend=$PORT
  {
    cat
    cat <<YAML
log: {stdout: true, level: error}
global:
  membership: {maxJoinDuration: 30s, broadcastAddress: 127.0.0.1}
clusterMetadata:
  enableGlobalNamespace: false
  failoverVersionIncrement: 10
  masterClusterName: active
  currentClusterName: active
  clusterInformation:
    active: {enabled: true, initialFailoverVersion: 1, rpcName: frontend, rpcAddress: "127.0.0.1:$frontend"}
dcRedirectionPolicy: {policy: noop}
services:
YAML
    service frontend "$frontend"
    for name in matching history worker; do
      free_port
      service "$name" "$PORT"
    done
  } >"$TMP/temporal.yaml"
  serve temporal "$BIN/temporal-server" --config-file "$TMP/temporal.yaml" --allow-no-auth start
  listening temporal "$frontend"
}
