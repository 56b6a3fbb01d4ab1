package cli

import (
	"encoding/json"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/server/internal/client"
)

// call is the verb that calls a method of an object.
func (s *session) call() *cobra.Command {
	var key string
	c := &cobra.Command{
		Use:   "call CLASS/NAME METHOD [JSON]",
		Short: "Call a method of an object on a server",
		Long: `Call a method of an object on a server, with an argument in JSON, and print the answer.

With --key a repeat within a day gets the first answer, and the method does not run again: use a new
key for each intent, and repeat with it when the outcome is unknown.`,
		Example: "  call cart/alice total\n  call cart/alice add '{\"item\": \"pen\"}' --key 7c1f",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := idOf(args[0])
			if err != nil {
				return err
			}
			body := struct {
				Class    string          `json:"class"`
				Name     string          `json:"name"`
				Method   string          `json:"method"`
				Argument json.RawMessage `json:"argument,omitempty"`
			}{Class: id.Class, Name: id.Name, Method: args[1]}
			if len(args) > 2 {
				if body.Argument = json.RawMessage(args[2]); !json.Valid(body.Argument) {
					return usage("the argument is not JSON: %s", value(body.Argument))
				}
			}
			raw, err := json.Marshal(body)
			if err != nil {
				return err
			}
			l, err := s.served("call")
			if err != nil {
				return err
			}
			answer, err := l.api.Do(c.Context(), client.Request{Method: http.MethodPost, Path: "/v1/call", Body: raw, Key: key})
			if err != nil {
				return refused(err)
			}
			return s.answer(answer)
		},
	}
	c.Flags().StringVar(&key, "key", "", "idempotency key, 1 to 512 bytes: for a day a repeat with it gets the first answer")
	return c
}
