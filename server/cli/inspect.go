package cli

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// inspection is an object as JSON shows it: its dead letters have their numbers.
type inspection struct {
	object.Inspection
	DeadLetters []letter `json:"deadLetters,omitempty"`
}

// inspect is the verb that shows one object.
func (s *session) inspect() *cobra.Command {
	var keys object.KeysOptions
	var start []byte
	c := &cobra.Command{
		Use:   "inspect CLASS/NAME",
		Short: "Show an object: alarm, label, execution, messages, dead letters, newest events and keys",
		Long: `Show an object: its alarm, label, open execution, messages, dead letters, newest events and keys.

Values are shown with --values: text as it is, other bytes in hexadecimal.

With -o json, bytes are in base64: values, and beside a key that is no UTF-8 its keyBytes, because
JSON has a replacement character for each byte of it that is none. nextKeyBytes is such a key for
--start-bytes.`,
		Example: "  inspect cart/alice\n  inspect cart/alice --values --prefix item/",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := idOf(args[0])
			if err != nil {
				return err
			}
			if err := page(keys.Limit); err != nil {
				return err
			}
			if len(start) > 0 {
				if keys.Start != "" {
					return usage("--start and --start-bytes are both given: take one")
				}
				keys.Start = string(start)
			}
			return s.look(c.Context(), func(src source) error { return s.show(c.Context(), src, id, keys) })
		},
	}
	c.Flags().BoolVar(&keys.Values, "values", false, "show values too")
	c.Flags().StringVar(&keys.Prefix, "prefix", "", "only keys that begin with this")
	c.Flags().StringVar(&keys.Start, "start", "", "begin with this key")
	c.Flags().BytesBase64Var(&start, "start-bytes", nil, "begin with this key, in base64: for keys that are no text")
	c.Flags().IntVar(&keys.Limit, "limit", object.DefaultPage, fmt.Sprintf("at most so many keys, up to %d", object.MaxPage))
	return c
}

func (s *session) show(ctx context.Context, src source, id storage.ID, o object.KeysOptions) error {
	in, err := src.inspect(ctx, id, o)
	if err != nil {
		return err
	}
	if s.format == "json" {
		view := inspection{Inspection: in}
		for _, d := range in.DeadLetters {
			view.DeadLetters = append(view.DeadLetters, letter{d.ID, d.Seq, d})
		}
		return printJSON(s.out, view)
	}
	s.showState(in)
	return s.showRows(in, o.Values)
}

// showState prints the single facts of an object.
func (s *session) showState(in object.Inspection) {
	switch {
	case !in.Exists && len(in.Events)+len(in.DeadLetters)+len(in.Messages) == 0:
		s.note("%s does not exist", shownID(in.ID))
	case !in.Exists:
		s.note("%s does not exist now", shownID(in.ID))
	default:
		s.note("%s", shownID(in.ID))
	}
	if in.Label != "" {
		s.note("label      %s", shown(in.Label))
	}
	if a := in.Alarm; a != nil {
		s.note("alarm      due %s, set to %s, %s failed, %s in a row", at(a.Due), at(a.Scheduled),
			plural(a.Attempts, "attempt", "attempts"), plural(a.Crashes, "crash", "crashes"))
		if a.LastError != "" {
			s.note("           %q", a.LastError)
		}
	}
	if in.Execution {
		s.note("execution  open since %s, begun by opening %d of the store", at(in.ExecutionSince), in.ExecutionEpoch)
	}
}

// showRows prints the lists of an object.
func (s *session) showRows(in object.Inspection, values bool) error {
	var messages, letters, events, keys [][]string
	for _, m := range in.Messages {
		messages = append(messages, []string{fmt.Sprint(m.Seq), shownID(m.From), shown(m.Method), fmt.Sprint(m.Attempts), at(m.Due), quoted(m.LastError)})
	}
	for _, d := range in.DeadLetters {
		letters = append(letters, []string{fmt.Sprint(d.Seq), shown(d.Kind), at(d.Died), shown(d.Reason), quoted(d.LastError)})
	}
	for _, e := range in.Events {
		events = append(events, []string{fmt.Sprint(e.Seq), at(e.At), shown(e.Kind), sized(uint64(e.SizeBytes))})
	}
	for _, k := range in.Keys {
		row := []string{shown(k.Key), sized(uint64(k.SizeBytes))}
		if values {
			row = append(row, value(k.Value))
		}
		keys = append(keys, row)
	}
	heads := []string{"KEY", "SIZE"}
	if values {
		heads = append(heads, "VALUE")
	}
	for _, list := range []struct {
		title string
		heads []string
		rows  [][]string
	}{
		{"messages that wait", []string{"SEQ", "FROM", "METHOD", "FAILED", "DUE", "ERROR"}, messages},
		{"dead letters", []string{"SEQ", "KIND", "DIED", "REASON", "ERROR"}, letters},
		{"newest events", []string{"SEQ", "AT", "KIND", "SIZE"}, events},
		{"keys", heads, keys},
	} {
		if len(list.rows) == 0 {
			continue
		}
		s.note("\n%s", list.title)
		if err := s.print(nil, list.heads, list.rows); err != nil {
			return err
		}
	}
	switch {
	case len(in.NextKeyBytes) > 0:
		s.note("more: --start-bytes %s", base64.StdEncoding.EncodeToString(in.NextKeyBytes))
	case in.NextKey != "":
		s.note("more: --start %s", shown(in.NextKey))
	}
	return nil
}

// value is a stored value for a table: text that a terminal can print as it is, other text
// quoted, other bytes in hexadecimal, and at most so much of it as a line holds.
func value(v []byte) string {
	const most = 200
	more := ""
	if len(v) > most {
		v, more = v[:most], fmt.Sprintf(" … %s more", sized(uint64(len(v)-most)))
		for len(v) > most-utf8.UTFMax && !utf8.Valid(v) {
			v = v[:len(v)-1]
		}
	}
	switch {
	case !utf8.Valid(v):
		return fmt.Sprintf("%x", v) + more
	case strings.ContainsFunc(string(v), func(r rune) bool { return !strconv.IsPrint(r) }):
		return strconv.Quote(string(v)) + more
	}
	return string(v) + more
}
