package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"feedwarden/internal/object"
)

// maxBody bounds every body but that of many jobs.
const maxBody = 1 << 20

const ndjsonType = "application/x-ndjson"

// contentType gives the media type of a body, and refuses one that is encoded:
// bytes that are counted must be the bytes that are read.
func contentType(r *http.Request) (string, error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return "", problem(http.StatusUnsupportedMediaType, "content-encoding", fmt.Sprintf("Content-Encoding %q: send the body as it is", e))
	}
	text := r.Header.Get("Content-Type")
	if text == "" {
		return "", nil
	}
	name, params, err := mime.ParseMediaType(text)
	if err != nil {
		return "", problem(http.StatusUnsupportedMediaType, "content-type", fmt.Sprintf("Content-Type %q cannot be read", text))
	}
	if cs := params["charset"]; cs != "" && !strings.EqualFold(cs, "utf-8") {
		return "", problem(http.StatusUnsupportedMediaType, "content-type", fmt.Sprintf("charset %q: JSON is UTF-8", cs))
	}
	return name, nil
}

func wrongType(w http.ResponseWriter, got string, want ...string) error {
	w.Header().Set("Accept", strings.Join(want, ", "))
	if got == "" {
		got = "none"
	}
	return problem(http.StatusUnsupportedMediaType, "content-type", fmt.Sprintf("Content-Type is %s: %s is wanted", got, strings.Join(want, " or ")))
}

// readJSON reads a whole body whose type says JSON.
func readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	name, err := contentType(r)
	if err != nil {
		return nil, err
	}
	if name != jsonType {
		return nil, wrongType(w, name, jsonType)
	}
	return readAll(w, r)
}

func readAll(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		return b, nil
	}
	var tooBig *http.MaxBytesError
	if errors.As(err, &tooBig) {
		return nil, err
	}
	return nil, problem(http.StatusBadRequest, "body", "the body could not be read to its end")
}

// readObject reads a body of one JSON object into v. A key that v does not have
// is an error, since a slip would change what is done.
func readObject(w http.ResponseWriter, r *http.Request, v any) error {
	b, err := readJSON(w, r)
	if err != nil {
		return err
	}
	return decodeObject(b, v)
}

// readOptional is readObject where no body at all is right too, whatever its type:
// many clients name one for each of their requests.
func readOptional(w http.ResponseWriter, r *http.Request, v any) error {
	name, err := contentType(r)
	if err != nil {
		return err
	}
	b, err := readAll(w, r)
	switch {
	case err != nil:
		return err
	case len(bytes.TrimSpace(b)) == 0:
		return nil
	case name != jsonType:
		return wrongType(w, name, jsonType)
	}
	return decodeObject(b, v)
}

func decodeObject(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil {
		if name := object.Twice(b); name != "" {
			return problem(http.StatusBadRequest, "invalid-json", fmt.Sprintf("field %q stands twice: once is wanted", name))
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return problem(http.StatusBadRequest, "invalid-json", "something follows the JSON object: one object is wanted")
		}
		return nil
	}
	var te *json.UnmarshalTypeError
	switch {
	case errors.As(err, &te) && te.Field != "":
		return problem(http.StatusBadRequest, "invalid-json", fmt.Sprintf("%s is a JSON %s: %s is wanted", te.Field, te.Value, jsonName(te.Type.Kind().String())))
	case errors.As(err, &te):
		return problem(http.StatusBadRequest, "invalid-json", fmt.Sprintf("a JSON %s: one object is wanted", te.Value))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return problem(http.StatusBadRequest, "invalid-json", "not JSON: it ends too soon; one object is wanted")
	}
	return problem(http.StatusBadRequest, "invalid-json", strings.TrimPrefix(err.Error(), "json: "))
}

func jsonName(kind string) string {
	switch kind {
	case "int64":
		return "a whole number"
	case "bool":
		return "true or false"
	}
	return "a text"
}
