// Shows times by the clock of the browser instead of UTC, if the user has asked for it, on all pages.
"use strict";
const zone = (() => {
  const name = "holdfast local time";
  const button = document.getElementById("zone");
  let localHere = false;         // without storage it is this tab's alone
  function local() {
    try { return localStorage.getItem(name) === "1"; } catch { return localHere; }
  }
  function setLocal(on) {
    localHere = on;
    try { on ? localStorage.setItem(name, "1") : localStorage.removeItem(name); } catch { /* this tab alone */ }
  }

  // shift returns a date whose UTC is the wall clock to show, and the name of its zone.
  function shift(date) {
    if (!local()) return [date, "UTC"];
    const minutes = -date.getTimezoneOffset(), two = (n) => String(Math.floor(n)).padStart(2, "0");
    return [new Date(date.getTime() + minutes * 60000), (minutes < 0 ? "-" : "+") + two(Math.abs(minutes) / 60) + ":" + two(Math.abs(minutes) % 60)];
  }
  // text returns the characters from..to of a date in ISO 8601, and the zone.
  function text(date, from, to) {
    const [shown, name] = shift(date);
    return shown.toISOString().slice(from, to).replace("T", " ") + " " + name;
  }

  function show() {
    button.textContent = local() ? "Show UTC" : "Show local time";
    for (const time of document.querySelectorAll("time")) {
      const date = new Date(time.dateTime);
      const title = text(date, 0, 23);
      if (time.title !== title) time.title = title;
      if (time.className === "clock") time.textContent = text(date, 11, 16);
    }
    document.dispatchEvent(new Event("zone"));
  }

  addEventListener("storage", (event) => { if (event.key === name) show(); });
  button.addEventListener("click", () => { setLocal(!local()); show(); });
  button.hidden = false;
  document.addEventListener("htmx:after:swap", show);
  show();
  return { clock: (date) => text(date, 11, 19) };
})();
