// Package object hosts durable objects: keyed, single-threaded, each with its own
// keyspace and one alarm in the store of one Host.
//
//   - A handler runs in a turn. One object has one turn at a time, in the order of
//     arrival; different objects run in parallel.
//   - A turn commits as one unit when its handler returns nil: keys, alarm, marks
//     and events in one atomic batch. A handler that fails leaves no trace.
//   - Nothing leaves the objects of a store before what it depends on is durable:
//     no reply, no event, no start of a work. Turns do not wait for that.
//   - An alarm fires at its time or later, also after a restart, and is gone only
//     with the commit of the turn that handles it. So its effects on what is stored
//     happen exactly once, and effects outside at least once.
//   - After an error of the store nothing more is acknowledged, and the host ends.
//
// Define makes a class, Handle adds a method to it, Open starts a host with
// classes, and Method.Call calls. A handler reaches its object's side of the
// runtime through the State that its constructor was given. The promises are
// numbered in docs/CONTRACT.md (O1 to O17, S1 to S9, A1 to A10).
package object
