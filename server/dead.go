package server

// deadRoutes are the routes of dead letters and recoveries.
func (s *Server) deadRoutes() []route { return nil }
