package demo

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The API's answers, in the shapes of its documentation: videos.list and the
// error format.

type videoList struct {
	Kind          string     `json:"kind"`
	ETag          string     `json:"etag"`
	NextPageToken string     `json:"nextPageToken,omitempty"`
	PrevPageToken string     `json:"prevPageToken,omitempty"`
	Items         []videoRow `json:"items"`
	PageInfo      pageInfo   `json:"pageInfo"`
}

type pageInfo struct {
	TotalResults   int `json:"totalResults"`
	ResultsPerPage int `json:"resultsPerPage"`
}

type videoRow struct {
	Kind           string          `json:"kind"`
	ETag           string          `json:"etag"`
	ID             string          `json:"id"`
	Snippet        *snippet        `json:"snippet,omitempty"`
	ContentDetails *contentDetails `json:"contentDetails,omitempty"`
	Statistics     *statistics     `json:"statistics,omitempty"`
}

type snippet struct {
	PublishedAt          string               `json:"publishedAt"`
	ChannelID            string               `json:"channelId"`
	Title                string               `json:"title"`
	Description          string               `json:"description"`
	Thumbnails           map[string]thumbnail `json:"thumbnails"`
	ChannelTitle         string               `json:"channelTitle"`
	CategoryID           string               `json:"categoryId"`
	LiveBroadcastContent string               `json:"liveBroadcastContent"`
}

type thumbnail struct {
	URL    string `json:"url"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

type contentDetails struct {
	Duration   string `json:"duration"`
	Dimension  string `json:"dimension"`
	Definition string `json:"definition"`
	Caption    string `json:"caption"`
}

// statistics are strings, as the API gives them; a hidden count is missing.
type statistics struct {
	ViewCount     string `json:"viewCount,omitempty"`
	LikeCount     string `json:"likeCount,omitempty"`
	FavoriteCount string `json:"favoriteCount"`
	CommentCount  string `json:"commentCount,omitempty"`
}

// apiError is a refusal: what the API calls code, reason and domain.
type apiError struct {
	status         int
	reason, domain string
	grpc           string
	message        string
}

var (
	errNoKey = apiError{403, "forbidden", "global", "PERMISSION_DENIED",
		"Method doesn't allow unregistered callers. Please send the key in the header X-Goog-Api-Key."}
	errKeyInQuery = apiError{400, "badRequest", "global", "INVALID_ARGUMENT",
		"This upstream takes the key in the header X-Goog-Api-Key alone, never in the query."}
	errQuota = apiError{403, "quotaExceeded", "youtube.quota", "",
		"The request cannot be completed because you have exceeded your quota."}
	errPart = apiError{400, "missingRequiredParameter", "youtube.parameter", "",
		"No value for required parameter part."}
	errFilter = apiError{400, "missingRequiredParameter", "youtube.parameter", "",
		"No filter selected. Expected chart=mostPopular."}
	errMaxResults = apiError{400, "invalidParameter", "youtube.parameter", "",
		"Invalid value for maxResults. Acceptable values are 1 to 50."}
	errRegion = apiError{400, "invalidRegionCode", "youtube.parameter", "",
		"The region code is not two letters."}
	errPageToken = apiError{400, "invalidPageToken", "youtube.parameter", "",
		"The request specifies an invalid page token."}
	errChart = apiError{404, "videoChartNotFound", "youtube.video", "",
		"The requested video chart is not supported or is not available."}
)

func (e apiError) write(w http.ResponseWriter) {
	one := map[string]any{"message": e.message, "domain": e.domain, "reason": e.reason}
	body := map[string]any{"code": e.status, "message": e.message, "errors": []any{one}}
	if e.grpc != "" {
		body["status"] = e.grpc
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(e.status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": body})
}

// videos answers videos.list with chart=mostPopular.
func (u *Upstream) videos(w http.ResponseWriter, r *http.Request) {
	if e := u.admit(w, r); e != nil {
		e.write(w)
		return
	}
	ask, e := parseChartRequest(r, u.period())
	if e != nil {
		e.write(w)
		return
	}
	list := ask.page(u)
	body, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	send(w, r, "application/json; charset=UTF-8", `"`+list.ETag+`"`, append(body, '\n'))
}

// admit checks and charges the key. An invalid request costs as any other.
func (u *Upstream) admit(w http.ResponseWriter, r *http.Request) *apiError {
	if r.URL.Query().Has("key") {
		return &errKeyInQuery
	}
	key := r.Header.Get("X-Goog-Api-Key")
	if key == "" {
		return &errNoKey
	}
	if !u.spend(key) {
		if a, ok := w.(*answer); ok {
			a.overQuota = true
		}
		return &errQuota
	}
	return nil
}

// chartRequest is a page of a chart that was asked for.
type chartRequest struct {
	region region
	parts  map[string]bool
	max    int
	period int64
	offset int
}

var regionCode = regexp.MustCompile(`^[A-Za-z]{2}$`)

func parseChartRequest(r *http.Request, period int64) (chartRequest, *apiError) {
	q := r.URL.Query()
	ask := chartRequest{parts: map[string]bool{}, max: 5, period: period}
	for _, p := range strings.Split(strings.Join(q["part"], ","), ",") {
		if p = strings.TrimSpace(p); p != "" {
			ask.parts[p] = true
		}
	}
	if len(ask.parts) == 0 {
		return ask, &errPart
	}
	switch q.Get("chart") {
	case "mostPopular":
	case "":
		return ask, &errFilter
	default:
		return ask, &errChart
	}
	if v := q.Get("maxResults"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > 50 {
			return ask, &errMaxResults
		}
		ask.max = n
	}
	code := q.Get("regionCode")
	if code == "" {
		code = "US"
	}
	if !regionCode.MatchString(code) {
		return ask, &errRegion
	}
	var ok bool
	if ask.region, ok = regionOf(strings.ToUpper(code)); !ok {
		return ask, &errChart
	}
	if v := q.Get("pageToken"); v != "" {
		if ask.period, ask.offset, ok = readPageToken(v, period); !ok {
			return ask, &errPageToken
		}
	}
	return ask, nil
}

// A page token names the chart's period, so that the pages of one reading
// belong together.
func pageToken(period int64, offset int) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "C%d.%d", period, offset))
}

func readPageToken(s string, now int64) (period int64, offset int, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return 0, 0, false
	}
	n, err := fmt.Sscanf(string(b), "C%d.%d", &period, &offset)
	if err != nil || n != 2 || offset < 0 || offset >= chartLength || period > now || period < now-lifetime {
		return 0, 0, false
	}
	return period, offset, true
}

func (c chartRequest) page(u *Upstream) videoList {
	all := chart(u.o.Seed, c.region, c.period, u.o.Period)
	end := min(c.offset+c.max, len(all))
	list := videoList{
		Kind: "youtube#videoListResponse", Items: []videoRow{},
		PageInfo: pageInfo{TotalResults: len(all), ResultsPerPage: c.max},
	}
	tags := []string{c.region.code}
	for _, v := range all[c.offset:end] {
		row := c.row(v, u.URL())
		list.Items = append(list.Items, row)
		tags = append(tags, row.ETag)
	}
	list.ETag = tagOf(append(tags, fmt.Sprint(c.parts))...)
	if end < len(all) {
		list.NextPageToken = pageToken(c.period, end)
	}
	if c.offset > 0 {
		list.PrevPageToken = pageToken(c.period, max(0, c.offset-c.max))
	}
	return list
}

func (c chartRequest) row(v video, base string) videoRow {
	row := videoRow{Kind: "youtube#video", ID: v.id, ETag: tagOf(v.id, strconv.FormatInt(v.views, 10))}
	if c.parts["snippet"] {
		row.Snippet = &snippet{
			PublishedAt: v.published.Format(time.RFC3339), ChannelID: v.owner, Title: v.title, ChannelTitle: v.channel,
			Description: "From " + v.channel + ".", Thumbnails: thumbnailsOf(v, base), CategoryID: v.category,
			LiveBroadcastContent: "none",
		}
	}
	if c.parts["contentDetails"] {
		row.ContentDetails = &contentDetails{
			Duration: fmt.Sprintf("PT%dM%dS", v.seconds/60, v.seconds%60), Dimension: "2d", Definition: "hd", Caption: "false",
		}
	}
	if c.parts["statistics"] {
		row.Statistics = &statistics{ViewCount: strconv.FormatInt(v.views, 10), FavoriteCount: "0"}
		if !v.hidesLikes {
			row.Statistics.LikeCount = strconv.FormatInt(v.likes, 10)
		}
		if !v.mutes {
			row.Statistics.CommentCount = strconv.FormatInt(v.comments, 10)
		}
	}
	return row
}

func thumbnailsOf(v video, base string) map[string]thumbnail {
	out := map[string]thumbnail{
		"default": {base + "/thumb/" + v.id + ".svg", 120, 90},
		"medium":  {base + "/thumb/" + v.id + ".svg", 320, 180},
		"high":    {base + "/thumb/" + v.id + ".svg", 480, 360},
	}
	// Not every video has the large ones.
	if v.seconds%3 != 0 {
		out["standard"] = thumbnail{base + "/thumb/" + v.id + ".svg", 640, 480}
		out["maxres"] = thumbnail{base + "/thumb/" + v.id + ".svg", 1280, 720}
	}
	return out
}
