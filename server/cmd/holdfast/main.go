// Command holdfast looks at a store and operates it. It knows no classes of its own, so that it
// reads rows and runs no user code; a program that defines classes gets the same verbs from
// package cli.
//
//	go run ./server/cmd/holdfast --dir data verify
package main

import "github.com/holdfast-dev/holdfast/server/cli"

func main() { cli.Main(cli.Program{Name: "holdfast"}) }
