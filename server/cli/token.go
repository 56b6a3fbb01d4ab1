package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/server/auth"
)

// tokenFlags are the flags of all verbs of token.
type tokenFlags struct{ file, separator string }

// token is the verb for the tokens of a server.
func (s *session) token() *cobra.Command {
	var o tokenFlags
	c := &cobra.Command{
		Use:   "token",
		Short: "Add, list or revoke the tokens of a server",
		Long: `Add, list or revoke the tokens of a server, in the file that auth.Tokens of the server reads.

A server that runs sees a change within 5 s. The file must belong to the user of the server and have
the mode 0600; it holds no token, only their SHA-256.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.PersistentFlags().StringVar(&o.file, "file", "", "file of tokens")
	c.PersistentFlags().StringVar(&o.separator, "separator", "/", "the end of each prefix, as Config.Separator of the server has it")
	c.AddCommand(s.tokenAdd(&o), s.tokenLs(&o), s.tokenRevoke(&o))
	return c
}

// open reads the file. create accepts that there is none yet.
func (o *tokenFlags) open(create bool) (*auth.TokenFile, error) {
	switch {
	case o.file == "":
		return nil, usage("--file is missing: name the file of tokens")
	case o.separator == "":
		return nil, usage("--separator is empty")
	}
	tokens, err := auth.Tokens(o.file, auth.Options{Create: create, Separator: o.separator})
	return tokens, unopened(err)
}

// tokenError gives the error of a change its code of exit.
func tokenError(err error) error {
	if errors.Is(err, auth.ErrBadToken) || errors.Is(err, auth.ErrNoToken) {
		return &exit{Usage, err}
	}
	return unopened(err)
}

func (s *session) tokenAdd(o *tokenFlags) *cobra.Command {
	var name, role, prefix, expires string
	var calls []string
	c := &cobra.Command{
		Use:   "add",
		Short: "Make a token and print it, once",
		Long: `Make a token and print it to standard output, once.

A role lets read and operate: viewer reads names and statuses, reader also values and errors, operator
also uses verbs such as pause and retry, admin also deletes. --prefix limits the role to objects and
jobs with names that begin so. --call lets call, and may be repeated: a class, a job type or a
pool, with or without a prefix and the names of methods or verbs. Without a prefix of its own
it has that of --prefix. Each prefix ends in the separator.`,
		Example: `  token add --file tokens.json --name board --role viewer
  token add --file tokens.json --name "worker of acme" --call cart/acme/:add,get --expires 90d
  token add --file tokens.json --name acme --role operator --prefix acme/ --call orders`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			t := auth.Token{Name: name, Prefix: prefix}
			var err error
			if t.Role, err = auth.ParseRole(role); err != nil {
				return usage("--role: there is no role %q: use none, viewer, reader, operator or admin", role)
			}
			if t.Expires, err = expiry(expires); err != nil {
				return err
			}
			for _, call := range calls {
				t.Grants = append(t.Grants, grantOf(call, prefix, o.separator))
			}
			if t.Role == auth.None && len(t.Grants) == 0 {
				return usage("a token without --role and --call may do nothing: give one of them")
			}
			return s.addToken(o, t)
		},
	}
	c.Flags().StringVar(&name, "name", "", "whose token it is, for people")
	c.Flags().StringVar(&role, "role", "none", "none, viewer, reader, operator or admin")
	c.Flags().StringVar(&prefix, "prefix", "", "limits the role to names that begin with this, such as acme/")
	c.Flags().StringArrayVar(&calls, "call", nil, "what it may call: CLASS[/PREFIX][:NAME,...], such as cart/acme/:add,get")
	c.Flags().StringVar(&expires, "expires", "never", "when it ends: after 90d or 12h, or at 2027-01-01T00:00:00Z")
	return c
}

// addToken makes a token and prints it.
func (s *session) addToken(o *tokenFlags, t auth.Token) error {
	tokens, err := o.open(true)
	if err != nil {
		return err
	}
	added, text, err := tokens.Add(t)
	if err != nil {
		return tokenError(err)
	}
	if s.format == "json" {
		return printJSON(s.out, struct {
			auth.Token
			Text string `json:"token"`
		}{added, text})
	}
	fmt.Fprintf(s.errs, "token %s (%s) is in %s; it is printed this once:\n", added.ID, shown(added.Name), o.file)
	_, err = fmt.Fprintln(s.out, text)
	return err
}

func (s *session) tokenLs(o *tokenFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List the tokens, without the tokens themselves",
		Example: "  token ls --file tokens.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			tokens, err := o.open(false)
			if err != nil {
				return err
			}
			list, rows := tokens.List(), [][]string{}
			for _, t := range list {
				rows = append(rows, []string{t.ID, shown(t.Name), t.Role.String(), dash(t.Prefix), grants(t.Grants), at(t.Created), ends(t.Expires), at(t.LastUse)})
			}
			if len(list) == 0 {
				s.note("the file has no tokens")
				list = []auth.Token{}
			}
			return s.print(list, []string{"ID", "NAME", "ROLE", "PREFIX", "CALLS", "CREATED", "EXPIRES", "LAST USE"}, rows)
		},
	}
}

func (s *session) tokenRevoke(o *tokenFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token",
		Long: `Revoke the token with an ID, which token ls shows and which is the part of the token between
holdfast_ and the next underscore. A server that runs refuses the token and its sessions within 5 s.`,
		Example: "  token revoke --file tokens.json k3j5n2x7qz4abcde",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			tokens, err := o.open(false)
			if err != nil {
				return err
			}
			list := tokens.List()
			if err := tokens.Revoke(args[0]); err != nil {
				return tokenError(err)
			}
			i := slices.IndexFunc(list, func(t auth.Token) bool { return t.ID == args[0] })
			if i < 0 { // another process has added it meanwhile
				list, i = append(list, auth.Token{ID: args[0]}), len(list)
			}
			if s.format == "json" {
				return printJSON(s.out, list[i])
			}
			s.note("revoked %s (%s)", list[i].ID, shown(list[i].Name))
			return nil
		},
	}
}

// grantOf is the grant of a flag --call. The names follow the last colon, unless a slash or
// the separator comes with it or later, because then the colon is one of the prefix.
func grantOf(call, prefix, separator string) auth.Grant {
	var g auth.Grant
	if i := strings.LastIndex(call, ":"); i >= 0 && !strings.Contains(call[i:], "/") && !strings.HasSuffix(call, separator) {
		g.Names = strings.Split(call[i+1:], ",")
		call = call[:i]
	}
	g.Class, g.Prefix, _ = strings.Cut(call, "/")
	g.Prefix = cmp.Or(g.Prefix, prefix)
	return g
}

// grants is a list of grants for a table, each as --call takes it.
func grants(all []auth.Grant) string {
	var texts []string
	for _, g := range all {
		text := g.Class
		if g.Prefix != "" {
			text += "/" + g.Prefix
		}
		if len(g.Names) > 0 {
			text += ":" + strings.Join(g.Names, ",")
		}
		texts = append(texts, shown(text))
	}
	return cmp.Or(strings.Join(texts, " "), "-")
}

// dash is a text for a table; empty is a dash.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return shown(text)
}

// ends is the time of an expiry for a table.
func ends(t time.Time) string {
	switch {
	case t.IsZero():
		return "never"
	case !time.Now().Before(t):
		return at(t) + ", over"
	}
	return at(t)
}

// expiry is the time of the flag --expires; zero: never. Days have 24 hours.
func expiry(text string) (time.Time, error) {
	if text == "never" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	after, err := time.ParseDuration(text)
	if number, ok := strings.CutSuffix(text, "d"); ok {
		var days uint64
		days, err = strconv.ParseUint(number, 10, 16)
		after = time.Duration(days) * 24 * time.Hour
	}
	if err != nil || after <= 0 {
		return time.Time{}, usage("--expires is %q: write 90d, 12h, never, or a time such as 2027-01-01T00:00:00Z", text)
	}
	return time.Now().Add(after), nil
}
