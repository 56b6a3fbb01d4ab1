package server

// jobRoutes are the routes of jobs: lists, verbs and views.
func (s *Server) jobRoutes() []route { return nil }
