package sink

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"feedwarden/jobs/source"
)

// format is how a file holds a version.
type format struct {
	body string // ndjson, json, csv
	pack string // "", gz, zst
}

// formatOf reads a format from a file's extension.
func formatOf(name string) (format, error) {
	var f format
	rest := name
	for _, p := range []string{"gz", "zst"} {
		if r, ok := strings.CutSuffix(rest, "."+p); ok {
			f.pack, rest = p, r
			break
		}
	}
	for _, b := range []string{"ndjson", "json", "csv"} {
		if strings.HasSuffix(rest, "."+b) {
			f.body = b
			return f, nil
		}
	}
	return f, fmt.Errorf("the path ends in no format that is known: want .ndjson, .json or .csv, and .gz or .zst after it if it shall be packed")
}

// mime is the media type of what is written.
func (f format) mime() string {
	switch f.pack {
	case "gz":
		return "application/gzip"
	case "zst":
		return "application/zstd"
	}
	switch f.body {
	case "json":
		return "application/json"
	case "csv":
		return "text/csv"
	}
	return "application/x-ndjson"
}

// write writes a version: the same bytes for the same version, always.
func (f format) write(w io.Writer, d Delivery) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	var packed io.WriteCloser
	out := io.Writer(buffered)
	switch f.pack {
	case "gz":
		packed = gzip.NewWriter(buffered)
		out = packed
	case "zst":
		z, err := zstd.NewWriter(buffered, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return err
		}
		packed = z
		out = z
	}
	err := f.writePlain(out, d)
	if packed != nil {
		if cerr := packed.Close(); err == nil {
			err = cerr
		}
	}
	if err == nil {
		err = buffered.Flush()
	}
	return err
}

func (f format) writePlain(w io.Writer, d Delivery) error {
	switch f.body {
	case "json":
		return encoder(w).Encode(d.document())
	case "csv":
		return WriteCSV(w, d.Version.Items)
	}
	return WriteNDJSON(w, d.Version.Items)
}

// WriteNDJSON writes one item a line.
func WriteNDJSON(w io.Writer, items []source.Item) error {
	enc := encoder(w)
	for _, it := range items {
		if err := enc.Encode(it); err != nil {
			return err
		}
	}
	return nil
}

// encoder writes JSON as it is: nothing here is put into a page.
func encoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}
