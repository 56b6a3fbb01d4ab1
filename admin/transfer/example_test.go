package transfer_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/admin/transfer"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A cart moves from one store to another.
func Example() {
	type basket struct{ st *object.State }
	baskets := object.Define("basket", func(_ context.Context, st *object.State) (*basket, error) { return &basket{st}, nil })
	add := object.Handle(baskets, "add", func(b *basket, ctx context.Context, item string) (int, error) {
		return 1, b.st.Storage().Put(ctx, item, 1)
	})
	here, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, baskets)
	if err != nil {
		log.Fatal(err)
	}
	there, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, baskets)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := add.Call(ctx, here, "anna", "cup"); err != nil {
		log.Fatal(err)
	}

	var file bytes.Buffer
	err = transfer.Export(ctx, here, baskets.ID("anna"), &file, transfer.ExportOptions{})
	fmt.Println(err)
	fmt.Print(file.String())
	id, err := transfer.Import(ctx, there, bytes.NewReader(file.Bytes()), transfer.ImportOptions{Alarms: true})
	fmt.Println(id, err)

	for _, host := range []*object.Host{here, there} {
		if err := host.Shutdown(ctx); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// <nil>
	// {"object":{"format":1,"class":"basket","name":"anna","codec":"json","counts":{"alarms":0,"executions":0,"letters":0,"events":0,"keys":1,"marks":0}}}
	// {"key":"cup","value":"1"}
	// {"sha256":"853abddbbd2baabfe0ff29e11b1bd117e0c3c83d5f71780264efd206c4a81eb0"}
	// basket/anna <nil>
}
