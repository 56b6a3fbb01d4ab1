package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	maxAnswerBytes = 4 << 10 // that are read
	keptAnswer     = 1 << 10 // that are stored
)

// request is one attempt at a delivery.
type request struct {
	URL, ID string
	At      time.Time // for the signature
	Body    []byte
	Secrets [][]byte
}

// answer is that of a receiver.
type answer struct {
	Status     int
	Text       string        // its begin
	RetryAfter time.Duration // 0: it says nothing
}

// header signs a request with each of its secrets, so that a receiver may have the old or the new one.
func (r request) header() (http.Header, error) {
	signatures := make([]string, len(r.Secrets))
	for i, secret := range r.Secrets {
		signer, err := standard.NewWebhookRaw(secret)
		if err != nil {
			return nil, err
		}
		if signatures[i], err = signer.Sign(r.ID, r.At, r.Body); err != nil {
			return nil, err
		}
	}
	h := http.Header{}
	h.Set(standard.HeaderWebhookID, r.ID)
	h.Set(standard.HeaderWebhookTimestamp, strconv.FormatInt(r.At.Unix(), 10))
	h.Set(standard.HeaderWebhookSignature, strings.Join(signatures, " "))
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "Holdfast-Webhook/1")
	return h, nil
}

// newSender sends over HTTP. It follows no redirect and takes no proxy from the environment.
func newSender(c Config) sender {
	return newSenderOver(c, dialer(c, net.DefaultResolver).DialContext)
}

// newSenderOver is newSender over connections that dial makes.
func newSenderOver(c Config, dial func(ctx context.Context, network, addr string) (net.Conn, error)) sender {
	client := &http.Client{
		Transport: &http.Transport{
			DialContext: dial, ForceAttemptHTTP2: true, DisableCompression: true,
			MaxIdleConns: c.Concurrency, MaxIdleConnsPerHost: c.Concurrency, IdleConnTimeout: time.Minute,
			TLSHandshakeTimeout: c.Timeout, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, r request) (answer, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("no answer within %v", c.Timeout))
		defer cancel()
		a, err := post(ctx, client, r)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return a, err
	}
}

// post sends a request, and reads the begin of the answer.
func post(ctx context.Context, client *http.Client, r request) (answer, error) {
	header, err := r.header()
	if err != nil {
		return answer{}, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return answer{}, err
	}
	q.Header = header
	p, err := client.Do(q)
	if u := new(url.Error); errors.As(err, &u) {
		err = u.Err // without the URL, which may have a secret
	}
	if err != nil {
		return answer{}, err
	}
	defer p.Body.Close()
	text, err := io.ReadAll(io.LimitReader(p.Body, maxAnswerBytes))
	if err != nil && !success(p.StatusCode) {
		err = nil // the status says enough
	}
	text = text[:min(len(text), keptAnswer)]
	return answer{p.StatusCode, strings.ToValidUTF8(string(text), "\uFFFD"), retryAfter(p)}, err
}

// success reports whether a status says that the receiver has the delivery.
func success(status int) bool { return status >= 200 && status <= 299 }

// retryAfter reads the header Retry-After in either of its forms.
func retryAfter(p *http.Response) time.Duration {
	text := p.Header.Get("Retry-After")
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(text)
	date, err2 := http.ParseTime(p.Header.Get("Date"))
	if err != nil || err2 != nil {
		return 0
	}
	return max(at.Sub(date), 0)
}
