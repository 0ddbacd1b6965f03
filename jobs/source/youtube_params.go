package source

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// needsLogin are parameters that the API takes only from a user who has logged
// in (YouTube Data API, "properly authorized request").
var needsLogin = []string{
	"forContentOwner", "forDeveloper", "forMine", "managedByMe", "mine", "myRating", "mySubscribers", "onBehalfOfContentOwner",
}

// videoOnly are search parameters that the API takes only with type=video
// (YouTube Data API, search.list).
var videoOnly = []string{
	"eventType", "location", "locationRadius", "videoCaption", "videoCategoryId", "videoDefinition", "videoDimension", "videoDuration",
	"videoEmbeddable", "videoLicense", "videoPaidProductPlacement", "videoSyndicated", "videoType",
}

// oneOfWords are parameters with a fixed set of values, by method.
var oneOfWords = map[string]map[string][]string{
	"videos.list": {"chart": {"mostPopular"}},
	"search.list": {
		"order":      {"date", "rating", "relevance", "title", "videoCount", "viewCount"},
		"safeSearch": {"moderate", "none", "strict"},
		"eventType":  {"completed", "live", "upcoming"},
	},
}

var twoLetters = regexp.MustCompile(`^[A-Za-z]{2}$`)

// checkValues finds values that the API would refuse, or answer with
// something else than was meant.
func checkValues(method string, params map[string]string) []error {
	var errs []error
	for _, name := range needsLogin {
		if params[name] != "" {
			errs = append(errs, fmt.Errorf("params.%s needs a user's login, and this source has a key alone", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(oneOfWords[method])) {
		words := oneOfWords[method][name]
		if v := params[name]; v != "" && !slices.Contains(words, v) {
			errs = append(errs, fmt.Errorf("params.%s is %q; it should be %s", name, clip(v), strings.Join(words, ", ")))
		}
	}
	if v := params["regionCode"]; v != "" && !twoLetters.MatchString(v) {
		errs = append(errs, fmt.Errorf("params.regionCode is %q; it should be two letters (ISO 3166-1), as BD", clip(v)))
	}
	switch method {
	case "videos.list":
		for _, name := range []string{"regionCode", "videoCategoryId"} {
			if params[name] != "" && params["id"] != "" {
				errs = append(errs, fmt.Errorf("params.%s goes with chart, and not with id", name))
			}
		}
	case "search.list":
		errs = append(errs, checkSearch(params)...)
	}
	return errs
}

func checkSearch(params map[string]string) []error {
	var errs []error
	for _, t := range strings.Split(params["type"], ",") {
		if t = strings.TrimSpace(t); t != "" && !slices.Contains([]string{"channel", "playlist", "video"}, t) {
			errs = append(errs, fmt.Errorf("params.type is %q; it should be channel, playlist or video", clip(t)))
		}
	}
	for _, name := range videoOnly {
		if params[name] != "" && params["type"] != "video" {
			errs = append(errs, fmt.Errorf("params.%s needs type: video", name))
		}
	}
	if (params["location"] != "") != (params["locationRadius"] != "") {
		errs = append(errs, errors.New("params should have both location and locationRadius, or neither"))
	}
	for _, name := range []string{"publishedAfter", "publishedBefore"} {
		if v := params[name]; v != "" {
			if _, err := time.Parse(time.RFC3339, v); err != nil {
				errs = append(errs, fmt.Errorf("params.%s is %q; it should be as 2026-11-30T08:00:00Z", name, clip(v)))
			}
		}
	}
	if params["relatedToVideoId"] != "" {
		errs = append(errs, errors.New("params.relatedToVideoId is no longer taken by the API, since August 2023"))
	}
	return errs
}
