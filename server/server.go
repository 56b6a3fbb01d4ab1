package server

import (
	"net/http"

	"github.com/holdfast-dev/holdfast/object"
)

// Server is an http.Handler that answers for one host. It may be mounted below a path with
// http.StripPrefix. All its methods may be called from any goroutine.
type Server struct {
	host   *object.Host
	config Config
	mux    *http.ServeMux
}
