package sink

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Numbers begin anew where Redis has lost its data; what was kept before stays.
func TestVersionOfANumberThatWasUsedBeforeWritesOverNothing(t *testing.T) {
	t.Parallel()
	for _, template := range []string{"/{feed}/{date}/{version}.ndjson.gz", "/{version}/{feed}.csv"} {
		dir, o := t.TempDir(), outlet(t, nil)
		c := Config{File: dir + template}
		older, newer := delivery("news", version(1, 40, 50)), delivery("news", version(1, 40, 51))
		newer.Version.FetchedAt = fetched.Add(time.Minute)
		sameSize := delivery("news", version(1, 40, 50))
		sameSize.Version.FetchedAt, sameSize.Version.Items[39].Title = fetched.Add(2*time.Minute), "<b> & \"quotes\""
		want := map[string]bool{}
		for _, d := range []Delivery{older, newer, sameSize, newer, older, sameSize} { // each comes twice
			deliver(t, o, c, d)
			f, err := formatOf(template)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := f.write(&b, d); err != nil {
				t.Fatal(err)
			}
			want[b.String()] = true
		}
		got := map[string]bool{}
		err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := os.ReadFile(name)
			if got[string(b)] || strings.HasSuffix(name, ".part") {
				t.Errorf("%s is there once too often", name)
			}
			got[string(b)] = true
			return err
		})
		if err != nil || len(want) != 3 || !maps.Equal(got, want) {
			t.Errorf("%s: %d files, want %d: %v", template, len(got), len(want), err)
		}
	}
}

func TestObjectOfANumberThatWasUsedBeforeStays(t *testing.T) {
	t.Parallel()
	srv := store(t)
	c := Config{S3: srv.URL + "/feeds/{feed}/{version}.csv", S3Key: "key", S3Secret: "canary-secret"}
	older, newer := delivery("news", version(1, 3, 5)), delivery("news", version(1, 4, 5))
	newer.Version.FetchedAt = fetched.Add(time.Minute)
	for _, d := range []Delivery{older, newer, newer, older} {
		deliver(t, outlet(t, nil), c, d)
	}
	reader, err := minio.New(strings.TrimPrefix(srv.URL, "http://"), &minio.Options{Creds: credentials.NewStaticV4("key", "canary-secret", ""), Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for o := range reader.ListObjects(t.Context(), "feeds", minio.ListObjectsOptions{Recursive: true}) {
		names = append(names, o.Key)
	}
	if got := strings.Join(names, " "); got != "news/1-20260401T003100.000000Z.csv news/1.csv" {
		t.Errorf("%s", got)
	}
}
