package main

import (
	"testing"

	"feedwarden/internal/config"
)

func TestFeedsThatArePagesAskRobotsTxtUnlessTheConfigSaysNot(t *testing.T) {
	t.Parallel()
	const feeds = `
feeds:
  board: {source: html, url: "https://example.org/top", items: article}
  news: {source: syndication, url: "https://example.org/feed.xml", pool: environment}
`
	for head, want := range map[string]bool{"": true, "fetch: {robots: true}": true, "fetch: {robots: false}": false} {
		f, err := config.Parse("f.yaml", []byte(head+feeds), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		for _, feed := range translate(f).jobs.Feeds {
			if feed.Robots != (want && feed.Name == "board") {
				t.Errorf("%q: feed %s asks: %v", head, feed.Name, feed.Robots)
			}
		}
	}
}
