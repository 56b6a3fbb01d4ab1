// Package tools has no code. Its module pins the programs that check this
// repository, so that their dependencies stay out of the library's go.mod. Run
// one from the root: GOWORK=off go tool -modfile=tools/go.mod staticcheck ./...
package tools
