package sink

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Config is one place for a feed's versions; one of File, Webhook, Stream,
// Stdout and S3 is set.
type Config struct {
	File string // path with {feed}, {version} and, if wanted, {date}; its extension is the format

	Webhook string // URL that is POSTed to
	Secret  string // of the signature; "" signs nothing

	Stream string // name of a Redis stream

	Stdout bool

	S3       string // https://host/bucket/path with the placeholders of File
	S3Key    string
	S3Secret string
	S3Region string // "" is us-east-1
}

// Kind is file, webhook, stream, stdout or s3; "" where nothing is set.
func (c Config) Kind() string {
	switch {
	case c.File != "":
		return "file"
	case c.Webhook != "":
		return "webhook"
	case c.Stream != "":
		return "stream"
	case c.Stdout:
		return "stdout"
	case c.S3 != "":
		return "s3"
	}
	return ""
}

// Name is the sink's own within its feed: its kind, and a mark of its place, so
// that it stays the same when others come or go. It gives nothing of a URL away.
func (c Config) Name() string {
	place := c.File + c.Stream
	for _, raw := range []string{c.Webhook, c.S3} {
		if u, err := url.Parse(raw); err == nil && raw != "" {
			place = u.Scheme + "://" + u.Host + u.Path
		}
	}
	if place == "" {
		return c.Kind()
	}
	sum := sha256.Sum256([]byte(c.Kind() + "\x00" + place))
	return c.Kind() + "-" + hex.EncodeToString(sum[:4])
}

// Place says where it goes, for a person; of a URL the host alone.
func (c Config) Place() string {
	switch c.Kind() {
	case "file":
		return c.File
	case "webhook":
		return host(c.Webhook)
	case "stream":
		return c.Stream
	case "s3":
		return host(c.S3)
	}
	return "standard output"
}

func host(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "a URL"
	}
	return u.Host
}

// Check says all that is wrong with it.
func (c Config) Check() error {
	var faults []error
	switch c.Kind() {
	case "":
		return errors.New("it names no place: file, webhook, stream, stdout or s3")
	case "file":
		faults = append(faults, checkTemplate(c.File))
	case "stream":
		for _, p := range []string{"fw:", "asynq:"} {
			if strings.HasPrefix(c.Stream, p) {
				faults = append(faults, fmt.Errorf("stream %q: names that begin with %s are not for others", c.Stream, p))
			}
		}
	case "webhook":
		if u, err := url.Parse(c.Webhook); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			faults = append(faults, errors.New("webhook: want a URL that begins with https:// or http://"))
		}
	case "s3":
		_, err := parseS3(c)
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}
