package shardlog_test

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// A log ends with the view that has all of it. Package move makes a store of that view.
func ExampleExport() {
	log, view := memlog.New(), memstore.New()
	head, err := shardlog.Export(shardlog.Options{Log: log}, view, false)
	fmt.Println(head.Exported(), err)
	at, _, err := shardlog.ViewPosition(view)
	fmt.Println(at, err)
	_, err = shardlog.Open(shardlog.Options{Log: log}, memstore.New())
	fmt.Println(errors.Is(err, shardlog.ErrExported))
	_, err = shardlog.Export(shardlog.Options{Log: log}, memstore.New(), false)
	fmt.Println(errors.Is(err, shardlog.ErrExported))
	_, err = shardlog.Export(shardlog.Options{Log: log}, view, false) // the same view goes on
	fmt.Println(err)
	// Output:
	// true <nil>
	// 0 <nil>
	// true
	// true
	// <nil>
}

// A view says up to where it has its log.
func ExampleViewPosition() {
	view := memstore.New()
	fmt.Println(shardlog.ViewPosition(view))
	fmt.Println(shardlog.SetViewPosition(view, 7, 0xcafe))
	fmt.Println(shardlog.ViewPosition(view))
	// Output:
	// 0 0 <nil>
	// <nil>
	// 7 51966 <nil>
}
