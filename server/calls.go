package server

// callRoutes are the routes of calls of methods.
func (s *Server) callRoutes() []route { return nil }
