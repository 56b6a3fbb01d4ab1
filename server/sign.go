package server

// signRoutes are the routes of the sign-in form.
func (s *Server) signRoutes() []route { return nil }
