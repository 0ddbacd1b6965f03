package web

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/http"

	"github.com/goccy/go-yaml"
)

// openapiText is the API as a document for programs. A test holds it against
// the routes and against real answers.
//
//go:embed openapi.yaml
var openapiText []byte

const yamlType = "application/yaml"

// openapi is the document in both its forms.
type openapi struct{ json, yaml []byte }

func loadOpenAPI(p prefix) (openapi, error) {
	text := bytes.Replace(openapiText, []byte("  - url: /\n"), []byte("  - url: "+string(p)+"/\n"), 1)
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return openapi{}, fmt.Errorf("web: openapi.yaml: %w", err)
	}
	return openapi{json: asJSON, yaml: text}, nil
}

func (s *Server) openapiJSON(w http.ResponseWriter, r *http.Request) {
	s.write(w, r, http.StatusOK, jsonType, s.openapi.json)
}

func (s *Server) openapiYAML(w http.ResponseWriter, r *http.Request) {
	s.write(w, r, http.StatusOK, yamlType, s.openapi.yaml)
}
