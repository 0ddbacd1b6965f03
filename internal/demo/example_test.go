package demo_test

import (
	"context"
	"fmt"
	"net/http"

	"feedwarden/internal/demo"
)

func ExampleStartWorld() {
	w, err := demo.StartWorld(context.Background(), demo.Options{Limit: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = w.Close() }()
	proxy := &http.Transport{Proxy: http.ProxyURL(w.HTTP[0].URL())}
	defer proxy.CloseIdleConnections()

	for range 2 {
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet,
			w.Upstream.BaseURL()+"/videos?chart=mostPopular&part=snippet&regionCode=BD", nil)
		req.Header.Set("X-Goog-Api-Key", "any")
		resp, err := proxy.RoundTrip(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
	s := w.Upstream.Stats()
	fmt.Println(s.Refused, s.ByVia)
	// Output:
	// 200
	// 403
	// 1 map[http-1:2]
}
