// Package server makes a host reachable by HTTP: its objects, jobs, pools and dead letters.
//
//	host, err := object.Open(options, server.Definitions(Carts, Refresh, Hooks, Orders, Thumbs)...)
//	srv, err := server.New(host, server.Config{
//		Auth:    tokens, // see package auth
//		Objects: []server.Exposed{server.Class(Carts, "add", "get")},
//		Jobs:    []verbs.Described{Refresh, Hooks, Orders, Thumbs},
//	})
//	mux.Handle("/holdfast/", http.StripPrefix("/holdfast", srv))
//
// # How it works
//
// Routes are one table, see routes: method, pattern, role, parameters and handler. The
// multiplexer, the matrix of the authorisation test and the OpenAPI document come from it. A
// request passes these steps: its Host is checked, then its principal, then the role, and
// only then its handler reads anything.
//
// Routes below /ui/ are pages for a browser, written by package dashboard. They pass the same
// steps, and read the host by the functions of the API's handlers.
//
// # Guarantees
//
//   - Only methods and job types that Config names can be called (V1).
//   - An answer of a call with status 200 is durable, and is the answer of Method.Call (V2).
//   - An error tells its outcome: "none" left nothing behind, "unknown" may have (V4).
//   - No request ends the host, or holds memory beyond its bounds (V5).
//   - Without the role a request is refused before anything is read (V6).
//   - No verb of an operator or an admin runs without an entry in the audit (V20).
//   - A backup runs beside all else, and its error is its own (V22).
//   - A page shows no more than the API (V13), and text of users is text on it (V14).
package server
