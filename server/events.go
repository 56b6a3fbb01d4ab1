package server

// eventRoutes are the routes of streams of events.
func (s *Server) eventRoutes() []route { return nil }
