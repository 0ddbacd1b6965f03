package web

import (
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

func loadOpenAPI() (openapi, error) {
	text, err := yaml.YAMLToJSON(openapiText)
	if err != nil {
		return openapi{}, fmt.Errorf("web: openapi.yaml: %w", err)
	}
	return openapi{json: text, yaml: openapiText}, nil
}

func (s *Server) openapiJSON(w http.ResponseWriter, r *http.Request) {
	s.write(w, r, http.StatusOK, jsonType, s.openapi.json)
}

func (s *Server) openapiYAML(w http.ResponseWriter, r *http.Request) {
	s.write(w, r, http.StatusOK, yamlType, s.openapi.yaml)
}
