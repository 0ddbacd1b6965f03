package source

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/corpus.golden anew")

// How the files of a folder are asked for, where nothing else is said.
var corpusUsual = map[string]Config{
	"syndication": {Kind: "syndication", URL: "https://feeds.example/news/feed.xml"},
	"json":        {Kind: "json", URL: "https://api.example.org/releases", Items: ".data[]", Map: releases.Map},
	"html":        {Kind: "html", URL: "https://pages.example/list/top", Items: ".item"},
	"youtube":     {Kind: "youtube", Method: "videos.list", Key: testKey, Params: map[string]string{"chart": "mostPopular"}},
}

// How single files are asked for, and the type that they come with.
var corpusOwn = map[string]struct {
	c           func(*Config)
	contentType string
}{
	"youtube/search.json": {func(c *Config) { c.Method, c.Params = "search.list", map[string]string{"q": "rain"} }, ""},
	"youtube/playlist.json": {func(c *Config) {
		c.Method, c.Params = "playlistItems.list", map[string]string{"playlistId": "PL1"}
	}, ""},
	"youtube/channels.json": {func(c *Config) { c.Method, c.Params = "channels.list", map[string]string{"id": "UC1,UC2"} }, ""},
	"json/top-level.json":   {func(c *Config) { c.Items, c.Map = ".[]", nil }, ""},
	"json/big-numbers.json": {func(c *Config) { c.Items, c.Map = ".rows[]", nil }, ""},
	"json/millis.json":      {func(c *Config) { c.Items, c.Map = ".hits.hits[]._source", map[string]string{"published": ".t"} }, ""},
	"json/paged.json":       {func(c *Config) { c.Paging = &Paging{Next: ".links.next"} }, ""},
	"json/hugo.json": {func(c *Config) {
		c.Items, c.Map = ".notes[]", map[string]string{"url": ".permalink", "published": ".date", "tags": ".tags"}
	}, ""},
	"html/header-lies.html": {nil, "text/html; charset=iso-8859-1"},
	"html/captcha.html":     {func(c *Config) { c.Ban = &BanSigns{CSS: "form#captcha"} }, "text/html"},
	"html/board.html": {func(c *Config) {
		c.Items, c.Next = "article.item", &NextPage{CSS: "a.next", Max: 3}
		c.Map = map[string]string{"id": "@data-id", "title": "h2", "url": "a@href", "published": "time", "image": "img@src", "plays": ".n"}
	}, "text/html"},
	"html/old-table.html": {func(c *Config) {
		c.Items, c.Map = "tr.row", map[string]string{"title": "td:nth-child(2)", "published": "td:nth-child(3)", "place": "td"}
	}, "text/html; charset=iso-8859-1"},
	"html/hugo-1.html": {hugoPages, "text/html"},
	"html/hugo-2.html": {hugoPages, "text/html"},
	"html/hugo-3.html": {hugoPages, "text/html"},
}

func hugoPages(c *Config) {
	c.URL, c.Items, c.Next = "https://harbour.example/log/", "article.note", &NextPage{CSS: "a[aria-label=Next]@href", Max: 10}
	c.Map = map[string]string{"id": "@id", "title": "h2", "url": "h2 a@href"}
}

// Every file of the corpus is read as corpus.golden says, and the README names
// its trap.
func TestCorpus(t *testing.T) {
	readme := string(recorded(t, "README.md"))
	var out strings.Builder
	counts := map[string]int{}
	for _, folder := range []string{"html", "json", "syndication", "youtube"} {
		files, err := filepath.Glob(filepath.Join("testdata", folder, "*"))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(files)
		for _, file := range files {
			name := folder + "/" + filepath.Base(file)
			counts[folder]++
			region, page, chart := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "-")
			chart = chart && folder == "youtube" && len(page) == 1
			if chart && !strings.Contains(readme, "`"+region+"`") || !chart && !strings.Contains(readme, "`"+filepath.Base(file)+"`") {
				t.Errorf("the README does not name %s", name)
			}
			c := corpusUsual[folder]
			own := corpusOwn[name]
			if own.c != nil {
				own.c(&c)
			}
			s := build(t, c)
			a, err := s.Read(answerTo(t, s, Page{}, 200, recorded(t, folder, filepath.Base(file)), "Content-Type", own.contentType))
			fmt.Fprintf(&out, "== %s\n%s", name, readOf(t, a, err))
		}
	}
	for folder, least := range map[string]int{"html": 6, "json": 6, "syndication": 12, "youtube": 24} {
		if counts[folder] < least {
			t.Errorf("%d files of %s, want %d or more", counts[folder], folder, least)
		}
	}
	const golden = "testdata/corpus.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := sections(string(recorded(t, "corpus.golden")))
	got := sections(out.String())
	for name, text := range got {
		if text != want[name] {
			t.Errorf("%s reads as\n%s\nwant\n%s", name, text, want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, the golden has %d", len(got), len(want))
	}
}

// readOf is an answer as the golden has it.
func readOf(t *testing.T, a Answer, err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	for _, it := range a.Items {
		if _, video := it.Fields["thumbnails"]; video { // known ones, tested by themselves
			it.Fields = map[string]any{"channel": it.Fields["channel"], "view_count": it.Fields["view_count"], "video_id": it.Fields["video_id"]}
		}
		fields, err := json.Marshal(it.Fields)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%d | %s | %s\n", it.Rank, brief(it), fields)
	}
	fmt.Fprintf(&b, "lossy %v, capped %v, dropped %d, next %q\n", a.Lossy, a.Capped, a.Dropped, a.Next)
	return b.String()
}

func sections(text string) map[string]string {
	out := map[string]string{}
	for _, block := range strings.Split("\n"+text, "\n== ")[1:] {
		name, rest, _ := strings.Cut(block, "\n")
		out[name] = strings.TrimSpace(rest)
	}
	return out
}
