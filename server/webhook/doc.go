// Package webhook sends the events of a host to other systems over HTTP, as the specification Standard
// Webhooks (https://www.standardwebhooks.com) says.
//
// Make Webhooks with New, pass their Definitions to object.Open, and set object.Options.Feed:
//
//	hooks, err := webhook.New(webhook.Config{Key: key})
//	host, err := object.Open(object.Options{Dir: "data", Feed: true}, append(hooks.Definitions(), Carts)...)
//	status, secret, err := hooks.Add(ctx, host, webhook.Subscription{URL: "https://example.com/hook", Class: "cart"})
//
// A subscription is an object with a URL, filters, and a place in the feed of the host. Its relay turns the events behind the
// place into deliveries. The deliveries and the new place are one commit, so each event has exactly one
// delivery through every crash (U1). A delivery is a task of a worker pool. It is sent at least once, always
// with the same header webhook-id, by which the receiver knows a repetition (U2).
//
// # A delivery
//
// The request is a POST with the body
//
//	{"type":"paid","timestamp":"2026-11-24T12:00:00Z","data":{"class":"cart","name":"alice","seq":7,"data":{"cents":499}}}
//
// The type is the kind of the event and the timestamp its time. data.data is the payload of the event if that is JSON, and
// data.dataBytes is the payload in base64 if it is not. A payload that would make the body larger than 256 KiB is left out, and
// data.omitted is true; data.sizeBytes tells its size.
//
// The headers are webhook-id, webhook-timestamp and webhook-signature, which the libraries of the
// specification verify with the secret that Add returns.
//
// Any status from 200 to 299 within 15 s is a success. After another answer, or none, the delivery is tried again after 5 s, 5 min,
// 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h, each plus up to 10 %, or later if the header Retry-After asks for it, and then it is a dead
// letter. The status 410 disables the subscription, and its deliveries wait until it is enabled again.
// A redirect is a failure, because it may lead anywhere.
//
// Deliveries have no order: eight of a subscription are under way at a time, and more while some are tried again.
//
// # Refused URLs
//
// A URL comes from a user, and the server stands in an inner network. So a request goes to https and port 443 alone, and never to
// an address that is not public: loopback, private, link-local, shared, multicast and the like. The address is checked when the
// connection is made, so no name that resolves to another address later gets by (U5). Config.AllowPrivate lifts that.
//
// # Limits
//
// A place in the feed is kept for as long as the events are (object.Options.EventRetention). A subscription that was disabled for longer, or
// had 100,000 deliveries waiting for so long, has missed events: it emits webhook.gap with both places and
// counts the gap (U4).
//
// Classes with names that begin with "holdfast." are left out, so that no delivery causes another. A
// subscription gets webhook.delivered, webhook.failed or webhook.gap if its Kinds name them. A delivery of one of them emits none (U6).
package webhook
