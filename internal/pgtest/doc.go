// Package pgtest runs PostgreSQL for tests: a primary and a synchronous standby on loopback, in a temporary directory, and a proxy that
// cuts connections at a chosen moment.
//
//   - Start makes a pair. Close ends it, and so does the end of this process, however it comes: by a panic, by a signal, or by
//     kill -9. Only processes whose working directory is that of the pair are ended.
//   - If this process is root, the servers run as the user postgres, because PostgreSQL refuses to run as root.
//   - A server can be killed, stopped at once, started again, frozen, promoted, and given other settings.
//   - Each method waits for the event itself: a line of the server's log, the end of all its processes, the answer to a query.
//
// It runs on Linux, because it reads /proc.
package pgtest
