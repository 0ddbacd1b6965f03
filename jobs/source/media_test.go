package source

import "testing"

// What a feed says in the elements of podcasts and of Media RSS alone is read;
// what it says itself counts before them.
func TestMediaAndPodcastElementsFillWhatIsLeftOpen(t *testing.T) {
	s := feedSource(t)
	const namespaces = `xmlns:media="http://search.yahoo.com/mrss/" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"`
	rss := func(item string) string {
		return `<rss version="2.0" ` + namespaces + `><channel><item><guid>1</guid>` + item + `</item></channel></rss>`
	}
	for name, tt := range map[string]struct{ body, title, image, summary string }{
		"a video channel": {
			`<feed xmlns="http://www.w3.org/2005/Atom" ` + namespaces + `><entry><id>yt:video:abc</id><title>T</title><media:group><media:title>not this</media:title>` +
				`<media:thumbnail url="https://i.example/abc.jpg" width="480"/><media:description>D</media:description></media:group></entry></feed>`,
			"T", "https://i.example/abc.jpg", "D",
		},
		"a thumbnail of the item's own": {rss(`<title>T</title><media:thumbnail url="/t.jpg"/><media:thumbnail url="/u.jpg"/>`), "T", "https://feeds.example/t.jpg", ""},
		"a podcast":                     {rss("<itunes:title>Part\n one</itunes:title><itunes:image href=\"https://i.example/p.jpg\"/>"), "Part one", "https://i.example/p.jpg", ""},
		"its own words first":           {rss(`<title>T</title><description>D</description><itunes:title>X</itunes:title><media:description>X</media:description>`), "T", "", "D"},
		"no web address":                {rss(`<title>T</title><media:thumbnail url="javascript:x"/><media:thumbnail/>`), "T", "", ""},
	} {
		a, err := s.Read(answerTo(t, s, Page{}, 200, []byte(tt.body)))
		if err != nil || len(a.Items) != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		it := a.Items[0]
		if it.Title != tt.title || it.Fields["image"] != orNil(tt.image) || it.Fields["summary"] != orNil(tt.summary) {
			t.Errorf("%s: title %q, image %v, summary %v", name, it.Title, it.Fields["image"], it.Fields["summary"])
		}
	}
}
