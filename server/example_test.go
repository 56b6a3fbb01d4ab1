package server_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

type Cart struct{ st *object.State }

var (
	Carts = object.Define("cart", func(_ context.Context, st *object.State) (*Cart, error) { return &Cart{st}, nil })
	Add   = object.Handle(Carts, "add", func(c *Cart, ctx context.Context, n int) (int, error) {
		var sum int
		if _, err := c.st.Storage().GetInto(ctx, "sum", &sum); err != nil {
			return 0, err
		}
		return sum + n, c.st.Storage().Put(ctx, "sum", sum+n)
	})
	Empty = object.Handle(Carts, "empty", func(c *Cart, ctx context.Context, _ struct{}) (bool, error) {
		return true, c.st.Storage().DeleteAll(ctx)
	})
)

// shops knows one token, which may call methods of the carts of a shop and look at them.
type shops struct{}

func (shops) Authenticate(r *http.Request) (auth.Principal, error) {
	switch r.Header.Get("Authorization") {
	case "":
		return auth.Principal{}, auth.ErrNoCredentials
	case "Bearer acme's token":
		return auth.Principal{ID: "acme", Role: auth.Viewer, Prefix: "acme/", Grants: []auth.Grant{{Class: "cart", Prefix: "acme/"}}}, nil
	}
	return auth.Principal{}, auth.ErrBadCredentials
}

// An application mounts the server below a path of its own. A call with an Idempotency-Key can be
// repeated.
func ExampleNew() {
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, server.Definitions(Carts)...)
	if err != nil {
		log.Fatal(err)
	}
	srv, err := server.New(host, server.Config{Auth: shops{}, Objects: []server.Exposed{server.Class(Carts, "add")}})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/holdfast/", http.StripPrefix("/holdfast", srv))
	web := httptest.NewServer(mux)
	for _, path := range []string{"acme%2F1/call/add", "acme%2F1/call/add", "other%2F1/call/add"} {
		r, err := http.NewRequest("POST", web.URL+"/holdfast/v1/objects/cart/"+path, strings.NewReader("5"))
		if err != nil {
			log.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer acme's token")
		r.Header.Set("Idempotency-Key", "click 1")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		fmt.Println(answer.StatusCode, strings.TrimSpace(string(body)))
	}
	web.Close()
	if err := host.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 200 5
	// 200 5
	// 404 {"type":"unknown-method","title":"There is no such method that the principal may call.","status":404,"outcome":"none","retryable":false}
}

// Only the methods that are named can be called. A mistake in the Config is an error of New.
func ExampleClass() {
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, server.Definitions(Carts)...)
	if err != nil {
		log.Fatal(err)
	}
	_, err = server.New(host, server.Config{Auth: shops{}, Objects: []server.Exposed{server.Class(Carts, "add", "fly")}})
	fmt.Println(err)
	if err := host.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: server: Config.Objects: the class "cart" has no method "fly"
}
