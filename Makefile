# Shortcuts for developers. CI runs .ci/run, and releases need scripts/prove too.

.PHONY: quick test race bench prove docs

# quick checks a change within a minute on a warm build cache.
quick:
	bash .ci/run format
	go vet ./... ./server/... ./storage/shardlog/pglog/...
	go test . ./internal/lint ./seam ./alarm ./object ./jobs ./storage/engine ./storage/memstore

test:
	go test work

race:
	bash .ci/run race

bench:
	cd bench && GOWORK=off go run ./cmd/holdfast-bench

prove:
	scripts/prove

# docs serves the package documentation of this checkout.
docs:
	go doc -http
