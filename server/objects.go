package server

// objectRoutes are the routes of objects: lists, keys, why, wake and delete.
func (s *Server) objectRoutes() []route { return nil }
