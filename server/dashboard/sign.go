package dashboard

// SignIn is the page with the form that takes a token.
type SignIn struct {
	Back  string // the page to go on with
	Error string // why the last token was not taken
}

func (SignIn) page() (name, title string) { return "signin", "Sign in" }

// Problem is the page of a request that was refused or has failed.
type Problem struct {
	Type, Title, Detail string
	Status              int
	Unknown             bool // the request may have had an effect
}

func (p Problem) page() (name, title string) { return "problem", p.Title }
