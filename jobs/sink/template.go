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
func render(text, feedName string, at time.Time, version int64) string {
	out := strings.NewReplacer(
		"{feed}", segment(feedName), "{date}", at.UTC().Format("2006-01-02"), "{version}", strconv.FormatInt(version, 10),
	).Replace(text)
	return path.Clean(out)
}

// segment makes a name one segment of a path, which is neither hidden nor a
// way out.
func segment(name string) string {
	s := url.PathEscape(name)
	if strings.HasPrefix(s, ".") {
		s = "%2E" + s[1:]
	}
	return s
}
