package demo

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// rssItems is how many stories the feed holds; each period a new one comes.
const rssItems = 20

type rssDoc struct {
	XMLName xml.Name   `xml:"rss"`
	Version string     `xml:"version,attr"`
	Channel rssChannel `xml:"channel"`
}

type rssChannel struct {
	Title       string    `xml:"title"`
	Link        string    `xml:"link"`
	Description string    `xml:"description"`
	Language    string    `xml:"language"`
	BuildDate   string    `xml:"lastBuildDate"`
	TTL         int       `xml:"ttl"`
	Items       []rssItem `xml:"item"`
}

type rssItem struct {
	Title       string  `xml:"title"`
	Link        string  `xml:"link"`
	Description string  `xml:"description"`
	Category    string  `xml:"category"`
	PubDate     string  `xml:"pubDate"`
	GUID        rssGUID `xml:"guid"`
}

type rssGUID struct {
	Permalink bool   `xml:"isPermaLink,attr"`
	Value     string `xml:",chardata"`
}

// feed serves an RSS 2.0 feed.
func (u *Upstream) feed(w http.ResponseWriter, r *http.Request) {
	period := u.period()
	doc := rssDoc{Version: "2.0", Channel: rssChannel{
		Title: "Notes from the demo", Link: u.URL() + "/", Description: "A feed that grows by a story each period.",
		Language: "en", BuildDate: u.start(period).Format(time.RFC1123Z), TTL: 1,
	}}
	for n := period; n > period-rssItems; n-- {
		doc.Channel.Items = append(doc.Channel.Items, u.rssStory(n))
	}
	body, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Last-Modified", u.start(period).Format(http.TimeFormat))
	send(w, r, "application/rss+xml; charset=utf-8", `"`+tagOf(string(body))+`"`, append([]byte(xml.Header), body...))
}

func (u *Upstream) rssStory(n int64) rssItem {
	h := hash(u.o.Seed, "story", n)
	g := regions[h%uint64(len(regions))]
	subject := g.subjects[h/7%uint64(len(g.subjects))]
	return rssItem{
		Title:       fmt.Sprintf("%s & friends: news from %s", subject, g.code),
		Link:        fmt.Sprintf("/story/%d", n),
		Description: fmt.Sprintf("<p>%s has a new favourite: <b>%s</b>.</p>", g.channels[h/3%uint64(len(g.channels))], subject),
		Category:    g.code,
		PubDate:     u.start(n).Format(time.RFC1123Z),
		GUID:        rssGUID{Value: "story-" + strconv.FormatInt(n, 10)},
	}
}

func (u *Upstream) start(period int64) time.Time {
	return time.Unix(0, period*int64(u.o.Period)).UTC()
}

// story is the page that a story's link leads to.
func (u *Upstream) story(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseInt(r.PathValue("n"), 10, 64)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintln(w, u.rssStory(n).Title)
}

// thumb draws a picture for a video, so that pages need no internet.
func (u *Upstream) thumb(w http.ResponseWriter, r *http.Request) {
	h := hash(0, strings.TrimSuffix(r.PathValue("name"), ".svg"))
	w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 90"><rect width="160" height="90" fill="hsl(%d 45%% 38%%)"/>`+
		`<circle cx="%d" cy="%d" r="%d" fill="hsl(%d 60%% 65%%)"/><path d="M70 32v26l22-13z" fill="#fff" opacity=".85"/></svg>`,
		h%360, 20+h/11%120, 15+h/13%60, 15+h/17%30, h/19%360)
}
