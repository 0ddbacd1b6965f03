package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"html"
	"io"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The API's answers, as far as they are read. Each type takes what a careful
// reader must expect in its place: a count as a string, a number, or missing.

type youtubeList struct {
	Kind          text              `json:"kind"`
	NextPageToken text              `json:"nextPageToken"`
	Items         []json.RawMessage `json:"items"`
}

type youtubeEntry struct {
	Kind           text           `json:"kind"`
	ID             youtubeID      `json:"id"`
	Snippet        youtubeSnippet `json:"snippet"`
	ContentDetails struct {
		Duration         text `json:"duration"`
		Definition       text `json:"definition"`
		VideoID          text `json:"videoId"`
		VideoPublishedAt text `json:"videoPublishedAt"`
	} `json:"contentDetails"`
	Statistics map[string]count `json:"statistics"`
}

type youtubeSnippet struct {
	PublishedAt          text                 `json:"publishedAt"`
	ChannelID            text                 `json:"channelId"`
	ChannelTitle         text                 `json:"channelTitle"`
	Title                text                 `json:"title"`
	CustomURL            text                 `json:"customUrl"`
	CategoryID           text                 `json:"categoryId"`
	LiveBroadcastContent text                 `json:"liveBroadcastContent"`
	Position             *count               `json:"position"`
	PlaylistID           text                 `json:"playlistId"`
	ResourceID           youtubeID            `json:"resourceId"`
	OwnerTitle           text                 `json:"videoOwnerChannelTitle"`
	OwnerID              text                 `json:"videoOwnerChannelId"`
	Thumbnails           map[string]thumbnail `json:"thumbnails"`
}

type thumbnail struct {
	URL    text  `json:"url"`
	Width  count `json:"width"`
	Height count `json:"height"`
}

// text is a string; any other JSON value reads as its absence.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = text(s)
	}
	return nil
}

// count is a number, or null when it is missing or no number.
type count struct {
	n  int64
	ok bool
}

func (c *count) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	*c = count{n, err == nil && n >= 0}
	return nil
}

func (c count) value() any {
	if !c.ok {
		return nil
	}
	return c.n
}

// youtubeID is a plain ID, or an object that names a thing of some kind, as
// search results and playlist entries have.
type youtubeID struct{ video, channel, playlist, plain string }

func (id *youtubeID) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &id.plain) == nil {
		return nil
	}
	var o struct {
		VideoID    text `json:"videoId"`
		ChannelID  text `json:"channelId"`
		PlaylistID text `json:"playlistId"`
	}
	if json.Unmarshal(b, &o) == nil {
		id.video, id.channel, id.playlist = string(o.VideoID), string(o.ChannelID), string(o.PlaylistID)
	}
	return nil
}

// decodeYouTube reads the body of a 200.
func decodeYouTube(body []byte) (youtubeList, bool, *AnswerError) {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	if len(body) == 0 {
		return youtubeList{}, false, notAFeed("an empty answer", "")
	}
	if body[0] != '{' {
		return youtubeList{}, false, notAFeed("an answer that is no JSON object", string(body[:min(len(body), 512)]))
	}
	var list youtubeList
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(&list); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return list, false, &AnswerError{Kind: Truncated, Reason: "the JSON stops in the middle"}
		}
		return list, false, notAFeed("not the JSON of a list", string(body[:min(len(body), 512)]))
	}
	if !strings.HasSuffix(string(list.Kind), "ListResponse") && list.Items == nil {
		return list, false, notAFeed("the JSON is not a list of the API", string(body[:min(len(body), 512)]))
	}
	return list, !utf8.Valid(body), nil
}

// item gives the entry the common shape; ok is false without an ID.
func (e youtubeEntry) item(region string) (Item, bool) {
	f := map[string]any{"kind": nil}
	s := e.Snippet
	if e.Kind == "youtube#searchResult" {
		// Searches, and they alone, give their texts with HTML's escapes.
		s.Title, s.ChannelTitle = text(html.UnescapeString(string(s.Title))), text(html.UnescapeString(string(s.ChannelTitle)))
	}
	it := Item{Title: string(s.Title), Published: instant(s.PublishedAt)}
	channel, channelID := string(s.ChannelTitle), string(s.ChannelID)
	switch {
	case e.Kind == "youtube#playlistItem":
		video := firstOf(s.ResourceID.video, string(e.ContentDetails.VideoID))
		// One video can stand in a list twice, the entry cannot.
		it.ID, it.URL = firstOf(e.ID.plain, video), watch(video)
		f["kind"], f["video_id"], f["playlist_id"] = "video", video, orNil(string(s.PlaylistID))
		f["added_at"] = orNil(string(s.PublishedAt))
		it.Published = instant(e.ContentDetails.VideoPublishedAt)
		f["position"] = nil
		if s.Position != nil {
			f["position"] = s.Position.value()
		}
		// The snippet's own channel is the list's owner.
		channel, channelID = string(s.OwnerTitle), string(s.OwnerID)
	case e.Kind == "youtube#channel":
		it.ID, it.URL = e.ID.plain, page("channel/", e.ID.plain)
		channel, channelID = it.Title, it.ID
		f["kind"], f["handle"] = "channel", orNil(string(s.CustomURL))
		counts(f, e.Statistics, "viewCount", "subscriberCount", "videoCount")
	case e.ID.channel != "":
		it.ID, it.URL = e.ID.channel, page("channel/", e.ID.channel)
		f["kind"] = "channel"
	case e.ID.playlist != "" && e.ID.video == "":
		it.ID = e.ID.playlist
		it.URL = "https://www.youtube.com/playlist?list=" + url.QueryEscape(e.ID.playlist)
		f["kind"] = "playlist"
	default:
		it.ID = firstOf(e.ID.plain, e.ID.video)
		it.URL = watch(it.ID)
		f["kind"] = "video"
		if e.ID.video == "" {
			counts(f, e.Statistics, "viewCount", "likeCount", "commentCount")
			f["duration"] = orNil(string(e.ContentDetails.Duration))
			f["duration_seconds"] = nil
			if n, ok := seconds(string(e.ContentDetails.Duration)); ok {
				f["duration_seconds"] = n
			}
			f["definition"] = orNil(string(e.ContentDetails.Definition))
			f["category_id"] = orNil(string(s.CategoryID))
		}
		f["live"] = orNil(string(s.LiveBroadcastContent))
	}
	f["channel"], f["channel_id"] = orNil(channel), orNil(channelID)
	f["channel_url"] = orNil(page("channel/", channelID))
	f["thumbnails"] = thumbnails(s.Thumbnails)
	f["region"] = orNil(region)
	it.Fields = f
	return it, it.ID != ""
}

// counts writes the named statistics under names of this project's style.
func counts(f map[string]any, stats map[string]count, names ...string) {
	for _, n := range names {
		f[strings.TrimSuffix(n, "Count")+"_count"] = stats[n].value()
	}
}

func thumbnails(in map[string]thumbnail) map[string]any {
	out := map[string]any{}
	for name, t := range in {
		if link := webLink(nil, string(t.URL)); link != "" {
			out[name] = map[string]any{"url": link, "width": t.Width.value(), "height": t.Height.value()}
		}
	}
	return out
}

func watch(id string) string {
	if id == "" {
		return ""
	}
	return "https://www.youtube.com/watch?v=" + url.QueryEscape(id)
}

func page(path, id string) string {
	if id == "" {
		return ""
	}
	return "https://www.youtube.com/" + path + url.PathEscape(id)
}

func instant(s text) *time.Time {
	t, err := time.Parse(time.RFC3339, string(s))
	if err != nil {
		return nil
	}
	return sane(&t)
}

var isoDuration = regexp.MustCompile(`^P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9})(?:\.\d+)?S)?)?$`)

// seconds reads an ISO 8601 duration in weeks or less; a running broadcast has
// "P0D", no length yet, and gives none.
func seconds(s string) (int64, bool) {
	m := isoDuration.FindStringSubmatch(s)
	if m == nil || s == "P0D" {
		return 0, false
	}
	var total, set int64
	for i, unit := range []int64{7 * 86400, 86400, 3600, 60, 1} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.ParseInt(m[i+1], 10, 64)
		if err != nil || n > math.MaxInt64/unit/2 {
			return 0, false
		}
		total, set = total+n*unit, set+1
	}
	return total, set > 0
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}
