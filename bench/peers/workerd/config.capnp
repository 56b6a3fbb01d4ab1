# run.sh names the directory and the address.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .counter),
    (name = "disk", disk = (writable = true)),
  ],
  sockets = [(name = "http", http = (), service = "main")],
);

const counter :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-07-01",
  durableObjectNamespaces = [(className = "Counter", uniqueKey = "counter", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [(name = "COUNTER", durableObjectNamespace = "Counter")],
);
