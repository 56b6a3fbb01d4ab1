package server

// poolRoutes are the routes of worker pools: tasks, outside workers.
func (s *Server) poolRoutes() []route { return nil }
