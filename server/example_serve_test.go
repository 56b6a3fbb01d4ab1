package server_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A program without a web server of its own has Serve. It ends the host too, in order, when its
// context ends, for example by signal.NotifyContext.
func ExampleServer_Serve() {
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, server.Definitions()...) // or a Dir, and classes
	if err != nil {
		log.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	srv, err := server.New(host, server.Config{
		Auth: auth.Insecure(), // a program for others to reach has auth.Tokens
		Listening: func(at []net.Addr) {
			go func() {
				defer end()
				answer, err := http.Get("http://" + at[0].String() + "/readyz")
				if err != nil {
					log.Fatal(err)
				}
				answer.Body.Close()
				fmt.Println("ready:", answer.Status)
			}()
		},
		Linger:          10 * time.Millisecond, // a few seconds behind a load balancer
		ShutdownTimeout: 10 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ended:", srv.Serve(ctx, "127.0.0.1:0"), "-", host.Err())
	// Output:
	// ready: 200 OK
	// ended: <nil> - object: host is shut down
}

// A program with an http.Server of its own ends streams before it waits for requests, and then ends
// the host.
func ExampleServer_EndStreams() {
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, server.Definitions()...)
	if err != nil {
		log.Fatal(err)
	}
	srv, err := server.New(host, server.Config{Auth: auth.Insecure()})
	if err != nil {
		log.Fatal(err)
	}
	web := httptest.NewServer(srv) // or an http.Server with srv as its Handler
	web.Config.RegisterOnShutdown(srv.EndStreams)
	stream, err := http.Get(web.URL + "/v1/events")
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- web.Config.Shutdown(context.Background()) }()
	frames, err := io.ReadAll(stream.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the stream says bye:", strings.Contains(string(frames), "event: bye"))
	fmt.Println(<-ended, host.Shutdown(context.Background()))
	// Output:
	// the stream says bye: true
	// <nil> <nil>
}
