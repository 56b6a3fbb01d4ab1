// Keeps the page live: a stream tells which topics have changed, and htmx fetches the parts that show them.
// One tab alone has the stream and tells the others, because HTTP/1.1 has six connections a browser.
"use strict";
(() => {
  const address = document.body.dataset.live;
  const status = document.getElementById("status"), button = document.getElementById("pause");
  const parts = () => document.querySelectorAll('[hx-trigger="stale"]');
  if (!address || !window.EventSource || !parts().length) return; // there is nothing to keep live

  const channelName = "holdfast " + new URL(address, location.href).pathname;
  const pauseName = channelName + " paused";
  const everyPart = 1000;        // a part is fetched at most once in this time, in ms
  const everyAge = 10000;        // and at least once in this time, because ages pass
  const channel = window.BroadcastChannel ? new BroadcastChannel(channelName) : null;

  let asOf = new Date(status.dataset.at);
  let state = "";                // of the stream, as this tab or the one that has it tells
  let stream = null;             // the EventSource, if this tab has it
  let leave = null;              // gives up the stream, or the wait for it
  let again = 0;                 // timer of the next try
  let delay = 1000;

  // paused reports whether the user has stopped the page. Without storage it is this tab's alone.
  let pausedHere = false;
  function paused() {
    try { return localStorage.getItem(pauseName) === "1"; } catch { return pausedHere; }
  }
  function setPaused(on) {
    pausedHere = on;
    try { on ? localStorage.setItem(pauseName, "1") : localStorage.removeItem(pauseName); } catch { /* this tab alone */ }
  }

  const told = () => "As of " + zone.clock(asOf);
  function show() {
    const stopped = paused();
    button.textContent = stopped ? "Resume live" : "Pause live";
    status.dataset.state = stopped ? "paused" : state;
    const text = stopped ? "Paused. " + told() : { live: "Live", reconnecting: "Reconnecting" }[state] || told();
    if (status.textContent !== text) status.textContent = text; // a screen reader hears each change
  }

  // Parts.
  const fetched = new Map();     // when each part was last fetched, by id
  const due = new Set();         // ids of parts with a timer

  function stale(part) {
    const id = part.id, now = performance.now();
    if (due.has(id)) return;
    due.add(id);
    setTimeout(() => {
      due.delete(id);
      const part = document.getElementById(id);
      if (!part || paused() || document.hidden) return; // all are fetched when the page goes on
      fetched.set(id, performance.now());
      htmx.trigger(part, "stale");
    }, Math.max(0, (fetched.get(id) ?? -everyPart) + everyPart - now));
  }
  const staleAll = () => parts().forEach(stale);

  // shows reports whether a part shows one of the topics: "class", or "class/name". A part without topics shows all.
  function shows(part, topics) {
    if (!part.dataset.topic) return true;
    return part.dataset.topic.split(" ").some((own) =>
      topics.some((t) => t === own || t.startsWith(own + "/") || own.startsWith(t + "/")));
  }

  // heard takes a message of the tab that has the stream.
  function heard(message) {
    if (message.state) { state = message.state; show(); }
    if (message.all) staleAll();
    if (message.topics) parts().forEach((part) => { if (shows(part, message.topics)) stale(part); });
  }
  function tell(message) {
    channel?.postMessage(message);
    heard(message);
  }
  channel?.addEventListener("message", (event) => {
    if (event.data.hello) {
      if (stream) channel.postMessage({ state });
    } else if (leave) heard(event.data);
  });

  // The stream.
  function open() {
    stream = new EventSource(address);
    stream.addEventListener("open", () => { delay = 1000; tell({ state: "live", all: true }); });
    stream.addEventListener("stale", (event) => tell({ topics: JSON.parse(event.data) }));
    stream.addEventListener("reset", () => tell({ all: true }));
    stream.addEventListener("bye", (event) => { if (JSON.parse(event.data).reason === "revoked") lost(); });
    stream.addEventListener("error", () => {
      if (stream.readyState === EventSource.CLOSED) lost();
      else tell({ state: "reconnecting" }); // the browser comes back by itself
    });
  }

  // lost fetches all parts, because a session that is over leads to the form, and opens a new stream later.
  function lost() {
    stream.close();
    tell({ state: "reconnecting", all: true });
    again = setTimeout(open, delay * (0.5 + Math.random() / 2));
    delay = Math.min(2 * delay, 10000);
  }
  function close() {
    clearTimeout(again);
    stream?.close();
    stream = null;
  }

  // start waits until no other tab has the stream, and has it until leave is called.
  function start() {
    if (leave || paused() || document.hidden) return;
    staleAll();
    if (!navigator.locks || !channel) {
      open();
      leave = close;
      return;
    }
    const stop = new AbortController();
    let release = null;
    leave = () => { close(); stop.abort(); release?.(); };
    navigator.locks.request(channelName, { signal: stop.signal }, () => new Promise((done) => {
      if (stop.signal.aborted) return done();
      release = done;
      open();
    })).catch(() => { /* it was left before it was there */ });
    channel.postMessage({ hello: true });
  }
  function end() {
    leave?.();
    leave = null;
    state = "";
  }
  function change() {
    paused() || document.hidden ? end() : start();
    show();
  }

  document.addEventListener("visibilitychange", change);
  addEventListener("pagehide", end);
  addEventListener("pageshow", change);
  addEventListener("storage", (event) => { if (event.key === pauseName) change(); });
  button.addEventListener("click", () => { setPaused(!paused()); change(); });
  button.hidden = false;
  document.addEventListener("htmx:after:swap", () => { asOf = new Date(); });
  document.addEventListener("zone", show);
  document.addEventListener("htmx:response:error", (event) => {
    if (event.detail.ctx.response.status === 401) location.reload();
  });
  setInterval(staleAll, everyAge);
  change();
})();
