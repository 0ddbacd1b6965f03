package sink

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"feedwarden/jobs/fetch"
)

const (
	// HeaderKey carries the version key, HeaderSignature the signature.
	HeaderKey       = "Feedwarden-Version-Key"
	HeaderSignature = "Feedwarden-Signature"

	// webhookMost is the size of a body in bytes; a larger document goes without its items.
	webhookMost = 4 << 20
	// answerMost is how much of an answer is read: it is not kept.
	answerMost = 64 << 10
)

// Sign is the signature of a body sent at an instant: "t=UNIX,v1=HEX", where HEX
// is HMAC-SHA256 under the secret of the seconds, a dot, and the body.
func Sign(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// post sends a version. Any 2xx says that it has arrived.
func (o *Outlet) post(ctx context.Context, c Config, d Delivery) error {
	var body bytes.Buffer
	if err := encoder(&body).Encode(d.document()); err != nil {
		return err
	}
	if body.Len() > webhookMost {
		body.Reset()
		if err := encoder(&body).Encode(d.reference()); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Webhook, bytes.NewReader(body.Bytes()))
	if err != nil {
		return &Error{Permanent: true, Err: errors.New("its URL cannot be parsed")}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(HeaderKey, d.Key())
	if c.Secret != "" {
		req.Header.Set(HeaderSignature, Sign(c.Secret, o.now(), body.Bytes()))
	}
	client := http.Client{Transport: o.http, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return transportError(ctx, err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, answerMost)) // so that the connection can be kept
	return judge(resp, o.now())
}

// judge turns an answer into what follows.
func judge(resp *http.Response, now time.Time) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	e := &Error{Err: fmt.Errorf("it answered %d", resp.StatusCode)}
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusGone, http.StatusRequestEntityTooLarge,
		http.StatusRequestURITooLong, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		e.Permanent = true
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		e.Permanent = true
		e.Err = fmt.Errorf("it answered %d: redirects are not followed; write the URL that it points to", resp.StatusCode)
	}
	e.RetryAfter, _ = fetch.RetryAfter(resp.Header, now)
	return e
}

// transportError takes the URL off an error: its path and query may be secret.
func transportError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return &Error{Permanent: fetch.Refused(err), Err: err}
}
