package source_test

import (
	"fmt"
	"net/http"
	"net/url"

	"feedwarden/jobs/fetch"
	"feedwarden/jobs/source"
)

func ExampleNew() {
	s, err := source.New(source.Config{
		Kind: "youtube", Method: "videos.list", Key: "k",
		Params: map[string]string{"chart": "mostPopular", "maxResults": "50"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	req, _ := s.Request(source.Page{Params: map[string]string{"regionCode": "BD"}})
	fmt.Println(s.Host(), req.Keyed)

	u, _ := url.Parse(req.URL)
	a, err := s.Read(&fetch.Response{
		Status: http.StatusOK, URL: u, Label: req.Label,
		Body: []byte(`{"kind":"youtube#videoListResponse","nextPageToken":"CAUQAA",
			"items":[{"kind":"youtube#video","id":"abc","snippet":{"title":"Rain"},"statistics":{"viewCount":"1200"}}]}`),
	})
	fmt.Println(a.Items[0].Rank, a.Items[0].Title, a.Items[0].Fields["view_count"], a.Items[0].Fields["like_count"], a.Next, err)
	// Output:
	// www.googleapis.com true
	// 1 Rain 1200 <nil> 1.1.CAUQAA <nil>
}

func ExampleNew_faults() {
	_, err := source.New(source.Config{Kind: "json", URL: "api.example.org/releases"})
	fmt.Println(err)
	// Output:
	// source: json: url should begin with https:// or http://
	// items is missing; it is a jq expression that yields the items, as in .data[]
}

func ExampleCost() {
	fmt.Println(source.Cost("youtube-2026-06", "search.list"))
	fmt.Println(source.Cost("youtube-legacy", "search.list"))
	// Output:
	// search.list 1 true
	// default 100 true
}

func ExampleKinds() {
	fmt.Println(source.Kinds())
	// Output: [html json push syndication youtube]
}
