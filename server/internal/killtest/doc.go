// Package killtest kills a program behind a server with SIGKILL, again and again, while
// clients call it, and then compares the answers that they got with the rows of the store.
//
// Clients give each call an Idempotency-Key and repeat it until it is answered, as a client of
// a service that may be restarted does. The environment variable HOLDFAST_SERVER_KILLS says
// how often the program is killed. Default: 5.
package killtest
