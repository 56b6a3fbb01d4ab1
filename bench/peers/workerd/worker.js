// A counter with an alarm, as a Durable Object on SQLite.
//
//   /increment/<name>     adds one, durably, and answers the count
//   /arm/<name>/<due>     sets the alarm, in ms of Unix time
//   /late, /late?all      how many have fired; how late each was, in ms
import { DurableObject } from "cloudflare:workers";

const late = []; // of all objects of the process
let due = 0; // the same for all

export class Counter extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY, n INTEGER)");
    this.n = [...ctx.storage.sql.exec("SELECT n FROM counter WHERE id = 0")][0]?.n ?? 0;
  }

  async fetch(request) {
    const [, , , what, , at] = request.url.split("/");
    if (what === "arm") {
      due = +at;
      await this.ctx.storage.setAlarm(due);
      return new Response("armed");
    }
    this.ctx.storage.sql.exec("INSERT OR REPLACE INTO counter VALUES (0, ?)", ++this.n);
    return new Response(String(this.n));
  }

  alarm() {
    late.push(Date.now() - due);
  }
}

export default {
  async fetch(request, env) {
    const [, , , what, name] = request.url.split("/");
    if (what === "late?all") return Response.json(late);
    if (what === "late") return Response.json({ n: late.length });
    return env.COUNTER.get(env.COUNTER.idFromName(name)).fetch(request);
  },
};
