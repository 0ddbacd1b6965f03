package sink

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

var placeholders = []string{"feed", "date", "version"}

// checkTemplate says what is wrong with a path that has placeholders. It must
// be another for each version of each feed: one that is written over could
// hold an older version after a newer one.
func checkTemplate(text string) error {
	var seen []string
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(placeholders, m[1]) {
			return fmt.Errorf("%s is no placeholder; there are {feed}, {date} and {version}", strconv.Quote(m[0]))
		}
		seen = append(seen, m[1])
	}
	for _, need := range []string{"feed", "version"} {
		if !slices.Contains(seen, need) {
			return fmt.Errorf("the path has no {%s}: each version of each feed has a file of its own, as in data/{feed}/{date}/{version}.ndjson.gz", need)
		}
	}
	if _, err := formatOf(text); err != nil {
		return err
	}
	return nil
}

// split cuts a path where its first placeholder's segment begins: what is
// before is fixed, what comes after is made of names.
func split(text string) (fixed, rest string) {
	at := strings.IndexByte(text, '{')
	if at < 0 {
		at = len(text)
	}
	cut := strings.LastIndexByte(text[:at], '/') + 1
	return text[:cut], text[cut:]
}

// render fills a path in. The date is that of the fetch, in UTC, so that a
// version has the same name however late it is delivered.
func render(text, feedName string, at time.Time, version string) string {
	out := strings.NewReplacer("{feed}", segment(feedName), "{date}", at.UTC().Format("2006-01-02"), "{version}", version).Replace(text)
	return path.Clean(out)
}

// names are where a version goes. Numbers begin anew where Redis has lost its
// data: when the first is taken by an earlier version of the same number, the
// second, which has the instant of the fetch too, is the version's.
func (d Delivery) names(text string) (plain, dated string) {
	n, at := strconv.FormatInt(d.Version.Version, 10), d.Version.FetchedAt
	return render(text, d.Feed, at, n), render(text, d.Feed, at, n+"-"+at.UTC().Format("20060102T150405.000000Z"))
}

// segment makes a name one segment of a path, which is neither hidden nor a
// way out.
func segment(name string) string {
	s := url.PathEscape(name)
	switch {
	case s == "":
		return "%" // which no other name becomes
	case s[0] == '.':
		return "%2E" + s[1:]
	}
	return s
}
