package server

// healthRoutes are the routes of whether the host works, and the documents about the server.
func (s *Server) healthRoutes() []route { return nil }
