package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/internal/client"
	"github.com/holdfast-dev/holdfast/server/webhook"
)

// webhook is the verb for the subscriptions of a server.
func (s *session) webhook() *cobra.Command {
	c := &cobra.Command{
		Use:   "webhook",
		Short: "List, add, change and remove the webhooks of a server, and send events again",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(s.webhookLs(), s.webhookAdd(), s.webhookShow(), s.webhookReplay(), s.webhookResend(), s.webhookRotate(),
		s.webhookSet("enable", "Let a subscription go on where it was"),
		s.webhookSet("disable", "Stop the deliveries of a subscription; its events stay until they expire"),
		s.webhookRm())
	return c
}

// webhookState is one word for a subscription.
func webhookState(w webhook.Status) string {
	switch {
	case w.Disabled != "":
		return "disabled " + w.Disabled
	case !w.FailingSince.IsZero():
		return "failing"
	}
	return "enabled"
}

// webhookFilter is the events of a subscription in words.
func webhookFilter(w webhook.Subscription) string {
	if w.Pool != "" {
		return "outcomes of tasks of " + w.Pool
	}
	kinds, class := "all", "all"
	if len(w.Kinds) > 0 {
		kinds = strings.Join(w.Kinds, ",")
	}
	if w.Class != "" {
		class = w.Class
	}
	return fmt.Sprintf("%s of %s/%s*", kinds, class, w.Prefix)
}

func (s *session) webhookLs() *cobra.Command {
	var after string
	var limit int
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the subscriptions",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := page(limit); err != nil {
				return err
			}
			l, err := s.served("webhook ls")
			if err != nil {
				return err
			}
			list := struct {
				Webhooks []webhook.Status `json:"webhooks"`
				Next     string           `json:"next,omitempty"`
			}{}
			if err := l.api.Get(c.Context(), "/v1/webhooks", client.Query("after", after, "limit", fmt.Sprint(limit)), &list); err != nil {
				return refused(err)
			}
			rows := [][]string{}
			for _, w := range list.Webhooks {
				rows = append(rows, []string{shown(w.ID), shown(w.URL), shown(webhookFilter(w.Subscription)), webhookState(w), fmt.Sprint(w.Waiting), fmt.Sprint(w.Delivered), fmt.Sprint(w.Dead), fmt.Sprint(w.Gaps)})
			}
			if len(rows) == 0 {
				s.note("no subscriptions")
			}
			if err := s.print(list, []string{"ID", "URL", "EVENTS", "STATE", "WAITING", "DELIVERED", "DEAD", "GAPS"}, rows); err != nil {
				return err
			}
			if list.Next != "" {
				s.note("more: --after %s", list.Next)
			}
			return nil
		},
	}
	c.Flags().StringVar(&after, "after", "", "go on behind the page that printed this")
	c.Flags().IntVar(&limit, "limit", object.DefaultPage, fmt.Sprintf("at most so many, up to %d", object.MaxPage))
	return c
}

func (s *session) webhookAdd() *cobra.Command {
	var w webhook.Subscription
	c := &cobra.Command{
		Use:   "add [URL]",
		Short: "Send the events from now on to a URL, or the outcomes of tasks of a pool to theirs, and print the secret of their signatures, which is not shown again",
		Example: `  webhook add https://example.com/hook --class order --kind completed --kind failed
  webhook add https://example.com/hook --class order --prefix acme/
  webhook add --pool thumb`,
		Args: func(c *cobra.Command, args []string) error {
			if w.Pool != "" {
				return cobra.NoArgs(c, args)
			}
			return cobra.ExactArgs(1)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			l, err := s.served("webhook add")
			if err != nil {
				return err
			}
			w.URL = strings.Join(args, "")
			made := struct {
				webhook.Status
				Secret string `json:"secret"`
			}{}
			if err := l.api.Post(c.Context(), "/v1/webhooks", w, &made); err != nil {
				return refused(err)
			}
			return s.print(made, []string{"ID", "SECRET"}, [][]string{{shown(made.ID), shown(made.Secret)}})
		},
	}
	c.Flags().StringVar(&w.Class, "class", "", "only events of this class (default all)")
	c.Flags().StringVar(&w.Prefix, "prefix", "", "only those of objects with names that begin with this")
	c.Flags().StringVar(&w.Pool, "pool", "", "the outcomes of tasks of this pool that have a URL of their own, without any event")
	c.Flags().StringArrayVar(&w.Kinds, "kind", nil, "only events of this kind; may be given several times (default all)")
	return c
}

func (s *session) webhookShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show the newest attempts of a subscription, the newest first",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := s.served("webhook show")
			if err != nil {
				return err
			}
			var shows struct {
				webhook.Status
				Attempts []webhook.Attempt `json:"attempts"`
			}
			if err := l.api.Get(c.Context(), client.Path("v1", "webhooks", args[0]), nil, &shows.Status); err != nil {
				return refused(err)
			}
			if err := l.api.Get(c.Context(), client.Path("v1", "webhooks", args[0], "attempts"), nil, &shows); err != nil {
				return refused(err)
			}
			w := shows.Status
			s.note("%s: %s, %s; %d delivered, %d waiting, %d given up, %d gaps", shown(w.URL), shown(webhookFilter(w.Subscription)), webhookState(w), w.Delivered, w.Waiting, w.Dead, w.Gaps)
			if r := w.Replay; r != nil {
				s.note("a replay of %s to %s has sent %d", at(r.Since), at(r.Until), r.Sent)
			}
			rows := [][]string{}
			for _, a := range shows.Attempts {
				status, next := fmt.Sprint(a.Status), ""
				if a.Status == 0 {
					status = "none"
				}
				if !a.Next.IsZero() {
					next = at(a.Next)
				}
				rows = append(rows, []string{shown(a.ID), shown(a.Kind), shown(a.Class + "/" + a.Name), fmt.Sprint(a.Attempt), at(a.At), a.Took.Round(time.Millisecond).String(), status, quoted(a.Error + a.Answer), next})
			}
			return s.print(shows, []string{"DELIVERY", "KIND", "OBJECT", "ATTEMPT", "AT", "TOOK", "STATUS", "ANSWER", "NEXT"}, rows)
		},
	}
}

func (s *session) webhookReplay() *cobra.Command {
	var last time.Duration
	c := &cobra.Command{
		Use:     "replay ID",
		Short:   "Send all events of the time before now again that are still kept, with the ids that they have had",
		Example: "  webhook replay wh_aqcaibaeaqcaibaeaqcaibaeaq --last 2h",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if last <= 0 {
				return usage("--last is %v: say how much of the time before now, for example 2h", last)
			}
			now := time.Now().UTC()
			return s.webhookDo(c, args[0], "replay", map[string]time.Time{"since": now.Add(-last), "until": now})
		},
	}
	c.Flags().DurationVar(&last, "last", 0, "how much of the time before now, for example 2h")
	return c
}

func (s *session) webhookResend() *cobra.Command {
	return &cobra.Command{
		Use:   "resend ID DELIVERY",
		Short: "Send the event of one delivery again, with the same id",
		Args:  cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return s.webhookDo(c, args[0], "resend", map[string]string{"delivery": args[1]})
		},
	}
}

func (s *session) webhookRotate() *cobra.Command {
	var keep time.Duration
	c := &cobra.Command{
		Use:   "rotate ID",
		Short: "Give a subscription a new secret, and print it; it is not shown again",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := s.served("webhook rotate")
			if err != nil {
				return err
			}
			made := struct {
				Secret string `json:"secret"`
			}{}
			if err := l.api.Post(c.Context(), client.Path("v1", "webhooks", args[0], "rotate"), map[string]string{"keep": keep.String()}, &made); err != nil {
				return refused(err)
			}
			return s.print(made, []string{"SECRET"}, [][]string{{shown(made.Secret)}})
		},
	}
	c.Flags().DurationVar(&keep, "keep", 24*time.Hour, "how long the old secret signs too, up to 720h")
	return c
}

// webhookSet is a verb without an argument.
func (s *session) webhookSet(verb, short string) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " ID",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE:  func(c *cobra.Command, args []string) error { return s.webhookDo(c, args[0], verb, nil) },
	}
}

func (s *session) webhookRm() *cobra.Command {
	return &cobra.Command{
		Use:   "rm ID",
		Short: "Remove a subscription, and drop its deliveries that wait",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := s.served("webhook rm")
			if err != nil {
				return err
			}
			_, err = l.api.Do(c.Context(), client.Request{Method: http.MethodDelete, Path: client.Path("v1", "webhooks", args[0])})
			return refused(err)
		},
	}
}

// webhookDo runs a verb of a subscription that has no answer. A nil body is none.
func (s *session) webhookDo(c *cobra.Command, id, verb string, body any) error {
	l, err := s.served("webhook " + verb)
	if err != nil {
		return err
	}
	r := client.Request{Method: http.MethodPost, Path: client.Path("v1", "webhooks", id, verb)}
	if body != nil {
		if r.Body, err = json.Marshal(body); err != nil {
			return err
		}
	}
	_, err = l.api.Do(c.Context(), r)
	return refused(err)
}
