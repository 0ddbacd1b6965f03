package fetch

import (
	"net/http"
	"strings"
	"testing"
)

func TestHeadersWithoutEndAreCutOff(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for range 40 {
			w.Header().Add("X-Long", strings.Repeat("a", 16<<10))
		}
	})
	_, err := open(t, Config{}).Do(t.Context(), Request{URL: s.URL}, Via{})
	wantKind(t, err, KindProtocol)
}
