package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"feedwarden/jobs/fetch"
)

func ExampleClient_Do() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "news") }))
	defer s.Close()
	c := fetch.New(fetch.Config{UserAgent: "example-feeds/1.0 (+https://example.org/contact)", AllowPrivate: true})
	defer c.Close()

	resp, err := c.Do(context.Background(), fetch.Request{URL: s.URL}, fetch.Via{})
	fmt.Println(resp.Status, string(resp.Body), err)

	_, err = c.Do(context.Background(), fetch.Request{URL: "ftp://example.org/?key=secret"}, fetch.Via{})
	var e *fetch.Error
	fmt.Println(errors.As(err, &e), e.Kind)
	fmt.Println(err)
	// Output:
	// 200 news <nil>
	// true policy
	// fetch: ftp://example.org/?… via direct: policy: scheme "ftp" is refused; only http and https are fetched
}

func ExampleRetryAfter() {
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	for _, v := range []string{"120", "Mon, 30 Nov 2026 08:01:00 GMT", "soon"} {
		fmt.Println(fetch.RetryAfter(http.Header{"Retry-After": {v}}, now))
	}
	// Output:
	// 2m0s true
	// 1m0s true
	// 0s false
}

func ExampleRedact() {
	u, _ := url.Parse("https://ann:pass@example.org/feed?key=secret")
	fmt.Println(fetch.Redact(u))
	// Output: https://example.org/feed?…
}
