package sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"feedwarden/jobs/fetch"
)

// s3Place is an S3 URL, taken apart: https://host/bucket/path.
type s3Place struct {
	host   string
	secure bool
	bucket string
	key    string // with placeholders
}

func parseS3(c Config) (s3Place, error) {
	scheme, rest, ok := strings.Cut(c.S3, "://")
	host, rest, found := strings.Cut(rest, "/")
	bucket, key, deep := strings.Cut(rest, "/")
	switch {
	case !ok || (scheme != "https" && scheme != "http") || !found || host == "" || strings.Contains(host, "@"):
		return s3Place{}, errors.New("s3: want https://host/bucket/{feed}/{date}/{version}.ndjson.gz")
	case bucket == "" || strings.Contains(bucket, "{") || !deep || key == "":
		return s3Place{}, errors.New("s3: the URL has no bucket or no path: want https://host/bucket/{feed}/{date}/{version}.ndjson.gz")
	case c.S3Key == "" || c.S3Secret == "":
		return s3Place{}, errors.New("s3: key and secret are wanted, from the environment")
	}
	if err := checkTemplate(key); err != nil {
		return s3Place{}, fmt.Errorf("s3: %w", err)
	}
	return s3Place{host: host, secure: scheme == "https", bucket: bucket, key: key}, nil
}

// fetchedAt is the metadata that tells versions of one number apart.
const fetchedAt = "Fetched-At"

// put stores a version as one object. An object appears whole or not at all.
func (o *Outlet) put(ctx context.Context, c Config, d Delivery) error {
	p, err := parseS3(c)
	if err != nil {
		return &Error{Permanent: true, Err: err}
	}
	f, err := formatOf(p.key)
	if err != nil {
		return &Error{Permanent: true, Err: err}
	}
	region := c.S3Region
	if region == "" {
		region = "us-east-1"
	}
	client, err := minio.New(p.host, &minio.Options{
		Creds: credentials.NewStaticV4(c.S3Key, c.S3Secret, ""), Secure: p.secure, Region: region,
		Transport: o.http, BucketLookup: minio.BucketLookupPath, MaxRetries: 1,
	})
	if err != nil {
		return &Error{Permanent: true, Err: errors.New("its host cannot be used")}
	}
	var body bytes.Buffer
	if err := f.write(&body, d); err != nil {
		return err
	}
	key, dated := d.names(p.key)
	fetched := d.Version.FetchedAt.UTC().Format(time.RFC3339Nano)
	// Who may only write is not told what is there: then the plain name it is.
	there, err := client.StatObject(ctx, p.bucket, strings.TrimPrefix(key, "/"), minio.StatObjectOptions{})
	if of := there.UserMetadata[fetchedAt]; err == nil && of != "" && of != fetched {
		key = dated
	}
	_, err = client.PutObject(ctx, p.bucket, strings.TrimPrefix(key, "/"), &body, int64(body.Len()), minio.PutObjectOptions{
		ContentType: f.mime(), UserMetadata: map[string]string{"Version-Key": url.PathEscape(d.Key()), fetchedAt: fetched}, DisableMultipart: true,
	})
	if err == nil {
		return nil
	}
	var answer minio.ErrorResponse
	if errors.As(err, &answer) && answer.StatusCode != 0 {
		e := &Error{Err: fmt.Errorf("it answered %d %s", answer.StatusCode, answer.Code)}
		e.Permanent = answer.StatusCode == http.StatusBadRequest || answer.StatusCode == http.StatusMethodNotAllowed
		return e
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return &Error{Permanent: fetch.Refused(err), Err: err}
}
