package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// The bounds of a relay. Tests make them smaller.
var (
	relayEvents        = 256     // of a commit at most
	maxWaiting  uint64 = 100_000 // deliveries of a subscription; the feed keeps the events behind them
)

const (
	// An alarm has the relay store its place, and begins a relay that has failed.
	relayLook = 5 * time.Minute
	// A place is stored without deliveries when it has moved so far.
	relayStride = 4096
	// maxBodyBytes bounds the body of a delivery.
	maxBodyBytes = 256 << 10
)

// begin begins the relay, unless it runs, and sets the alarm. A dormant store has none.
func (o *subscription) begin(ctx context.Context) error {
	if o.relaying.Load() {
		return o.look(ctx)
	}
	err := o.st.Go(ctx, "relay", o.relay)
	if errors.Is(err, object.ErrDormant) {
		return nil
	}
	if err != nil {
		return err
	}
	o.relaying.Store(true)
	return o.look(ctx)
}

func (o *subscription) look(ctx context.Context) error {
	return o.st.SetAlarm(ctx, o.st.Now().Add(relayLook))
}

// Alarm has the relay store its place, or begins it again.
func (o *subscription) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	if o.rec == nil {
		return nil
	}
	o.save.Store(true)
	o.poke()
	return o.begin(ctx)
}

// poke ends the wait of the relay.
func (o *subscription) poke() {
	o.news.Store(true)
	if wake := o.wake.Load(); wake != nil {
		(*wake)()
	}
}

// relay makes deliveries of the events of the feed until the instance ends.
func (o *subscription) relay(ctx context.Context) {
	defer o.relaying.Store(false)
	err := o.follow(ctx)
	switch {
	case ctx.Err() != nil, o.st.Closing(), errors.Is(err, object.ErrReset), errors.Is(err, object.ErrShutdown):
	default:
		o.st.Log().Error("webhook: the relay has failed and begins again", "error", err)
	}
}

// follow relays all events so far and waits for more. at is how far it has read, which is stored with the deliveries. A tap
// wakes it; it looks at the feed once more when the tap has begun, so that no event falls between.
func (o *subscription) follow(ctx context.Context) error {
	var at uint64
	var tap *object.Tap
	rest := func() {
		if tap != nil {
			tap.Close()
			tap = nil
		}
	}
	defer rest()
	for {
		var rec record
		err := o.st.Do(ctx, func(context.Context) (err error) { rec, err = o.found(); return err })
		if err != nil {
			return err
		}
		at = max(at, rec.Place)
		more, err := o.step(ctx, rec, &at)
		if err != nil {
			return err
		}
		switch {
		case more:
		case rec.held():
			rest() // events do not matter now
			if err := o.wait(ctx, nil); err != nil {
				return err
			}
		case tap == nil:
			o.st.Driver().Seams().At("webhook/rest", o.st.ID().String())
			if tap, err = o.st.Driver().Tap(object.TapOptions{Class: rec.Class}); err != nil {
				return err
			}
		default:
			if err := o.wait(ctx, tap); err != nil {
				return err
			}
			rest()
		}
	}
}

// held reports whether nothing is relayed until a turn of the subscription pokes the relay.
func (r *record) held() bool { return r.Disabled != "" || r.Waiting >= maxWaiting }

// wait waits for an event of a tap, if there is one, or for a poke.
func (o *subscription) wait(ctx context.Context, tap *object.Tap) error {
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	o.wake.Store(&cancel)
	defer o.wake.Store(nil)
	if o.news.Swap(false) {
		return nil
	}
	var err error
	if tap != nil {
		_, err = tap.Next(wait)
	} else {
		err = o.st.Driver().Seams().Executor.Wait(wait, make(chan struct{}))
	}
	if wait.Err() != nil && ctx.Err() == nil || errors.Is(err, object.ErrEventsMissed) {
		return nil
	}
	return err
}

// step reads a page of the feed and commits its deliveries. It reports whether to go on at once.
func (o *subscription) step(ctx context.Context, rec record, at *uint64) (more bool, err error) {
	switch {
	case rec.held():
		return false, nil
	case rec.Replay != nil:
		return true, o.replayStep(ctx, rec)
	}
	page, err := o.st.Driver().Feed(ctx, rec.filter(*at, relayEvents))
	if errors.Is(err, object.ErrEventsMissed) {
		missed := Gap{From: *at, To: page.Next}
		*at = page.Next
		return true, o.gap(ctx, missed)
	}
	if err != nil {
		return false, err
	}
	events, next := o.fitting(rec.wanted(page.Events), page.Next)
	*at = next
	if len(events) == 0 && next-rec.Place < relayStride && !(o.save.Load() && next != rec.Place) {
		return page.More, nil
	}
	o.save.Store(false)
	err = o.st.Do(ctx, func(ctx context.Context) error {
		now, err := o.found()
		if err != nil {
			return err
		}
		now.Place = next
		return o.deliver(ctx, now, events)
	})
	return page.More || next != page.Next, err
}

// replayStep sends a page of a replay.
func (o *subscription) replayStep(ctx context.Context, rec record) error {
	p := *rec.Replay
	page, err := o.st.Driver().Feed(ctx, rec.filter(p.Place, relayEvents))
	if err != nil && !errors.Is(err, object.ErrEventsMissed) {
		return err
	}
	var events []object.TapEvent
	for _, e := range rec.wanted(page.Events) {
		if !e.At.Before(p.Since) && e.At.Before(p.Until) && e.Cursor <= p.End {
			events = append(events, e)
		}
	}
	events, next := o.fitting(events, page.Next)
	p.Place, p.Sent = next, p.Sent+uint64(len(events))
	return o.st.Do(ctx, func(ctx context.Context) error {
		now, err := o.found()
		if err != nil {
			return err
		}
		if now.Replay = &p; next >= p.End || next == page.Next && !page.More {
			now.Replay = nil
		}
		return o.deliver(ctx, now, events)
	})
}

// filter is a page of the feed behind a place.
func (r *record) filter(after uint64, limit int) object.FeedOptions {
	return object.FeedOptions{After: after, Class: r.Class, Prefix: r.Prefix, Kinds: r.Kinds, Limit: limit}
}

// wanted are the events that are sent.
func (r *record) wanted(events []object.TapEvent) (wanted []object.TapEvent) {
	for _, e := range events {
		if r.wants(e) {
			wanted = append(wanted, e)
		}
	}
	return wanted
}

// fitting are as many of the events as fit into one message to the pool, and the place behind them.
func (o *subscription) fitting(events []object.TapEvent, next uint64) ([]object.TapEvent, uint64) {
	room := o.st.Driver().MaxValueBytes() / 4
	for i, e := range events {
		if room -= min(base64Bytes(len(e.Data)), o.bodyBytes()) + deliveryBytes; room < 0 && i > 0 {
			return events[:i], events[i-1].Cursor
		}
	}
	return events, next
}

// deliveryBytes is more than a delivery has beside the payload of its event, in most cases; base64Bytes is the size of a payload in base64.
const deliveryBytes = 1 << 10

func base64Bytes(n int) int { return n/3*4 + 4 }

// bodyBytes bounds the body of a delivery, so that its task is not too large for a small host either.
func (o *subscription) bodyBytes() int { return min(maxBodyBytes, o.st.Driver().MaxValueBytes()/8) }

// gap notes that events are missed, and goes on behind them.
func (o *subscription) gap(ctx context.Context, g Gap) error {
	return o.st.Do(ctx, func(ctx context.Context) error {
		now, err := o.found()
		if err != nil {
			return err
		}
		g.At = o.st.Now()
		now.Place, now.LastGap = g.To, &g
		now.Gaps++
		if err := o.st.Emit(ctx, EventGap, g); err != nil {
			return err
		}
		o.st.Log().Warn("webhook: events have expired before they were sent", "from", g.From, "to", g.To)
		return o.put(ctx, now)
	})
}

// deliver makes a delivery of each event, and stores the record, in the batch of the turn.
func (o *subscription) deliver(ctx context.Context, rec record, events []object.TapEvent) error {
	items := make([]workerpool.Item[delivery], 0, len(events))
	for _, e := range events {
		body, err := o.body(e)
		if err != nil {
			return err
		}
		rec.Made++
		rec.Waiting++
		d := delivery{To: o.st.Name(), ID: deliveryID(o.st.Name(), e.Cursor), Number: rec.Made, Kind: e.Kind, Class: e.ID.Class, Name: e.ID.Name, Body: body}
		items = append(items, workerpool.Item[delivery]{In: d, Options: d.options(0)})
	}
	if len(items) > 0 {
		if _, err := o.w.pool.EnqueueBatch(ctx, o.st.Outbox(), items); err != nil {
			return err
		}
	}
	return o.put(ctx, rec)
}

// deliveryID is the header webhook-id of an event, the same in each attempt, in a replay, and after a restore of the store.
func deliveryID(subscription string, place uint64) string {
	return "msg_" + strings.TrimPrefix(subscription, "wh_") + "_" + strconv.FormatUint(place, 10)
}

// placeOf is the place in the feed of an event of a delivery of the subscription.
func placeOf(subscription, id string) (uint64, bool) {
	digits, ok := strings.CutPrefix(id, deliveryID(subscription, 0)[:len(deliveryID(subscription, 0))-1])
	place, err := strconv.ParseUint(digits, 10, 64)
	return place, ok && err == nil && place > 0 && id == deliveryID(subscription, place)
}

// body is the body of a delivery.
type body struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      bodyData  `json:"data"`
}

// bodyData is the event. Data is the payload if that is JSON, and DataBytes if not.
type bodyData struct {
	Class     string          `json:"class"`
	Name      string          `json:"name"`
	Seq       uint64          `json:"seq"`
	Data      json.RawMessage `json:"data,omitempty"`
	DataBytes []byte          `json:"dataBytes,omitempty"`
	SizeBytes int             `json:"sizeBytes"` // of the payload
	Omitted   bool            `json:"omitted,omitempty"`
}

// body encodes the body of a delivery, without the payload if that is too large.
func (o *subscription) body(e object.TapEvent) ([]byte, error) {
	b := body{e.Kind, e.At.UTC(), bodyData{Class: e.ID.Class, Name: e.ID.Name, Seq: e.Seq, SizeBytes: len(e.Data)}}
	if json.Valid(e.Data) && utf8.Valid(e.Data) {
		b.Data.Data = e.Data
	} else {
		b.Data.DataBytes = e.Data
	}
	raw, err := json.Marshal(b)
	if err == nil && len(raw) > o.bodyBytes() {
		b.Data.Data, b.Data.DataBytes, b.Data.Omitted = nil, nil, true
		raw, err = json.Marshal(b)
	}
	if err != nil {
		return nil, fmt.Errorf("webhook: encode event %d of %s: %w", e.Seq, e.ID, err)
	}
	return raw, nil
}
