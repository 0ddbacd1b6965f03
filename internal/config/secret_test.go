package config

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const secrets = `
redis: {url: "redis://user:canary-redis@localhost:6379/0"}
web: {tokens: [{name: ops, token: "${TOKEN}", role: read}, {name: two, token: canary-literal-token, role: admin}]}
fetch: {user_agent: plain}
feeds:
  a:
    source: youtube
    method: videos.list
    key: "${KEY}"
    base_url: "https://example.org/v3"
    params: {chart: mostPopular, hl: "${PARAM}"}
    headers: {X-From-Env: "x ${HEADER}", X-Api-Token: canary-literal-header, Accept: plain/text}
  b:
    source: syndication
    url: "https://example.org/?a=b&api_key=canary-literal-query&t=${QUERY}"
    params: {access_token: canary-literal-param}
    sinks: [{webhook: "https://example.org/${HOOK}?token=canary-hook", secret: "${SINK}"}]
`

func canaries(name string) (string, bool) {
	return "canary-" + strings.ToLower(name) + "-0123456789", true
}

// holder has values where fmt cannot call their methods.
type holder struct {
	value  Value
	values map[string]Value
}

func TestNoFormOfPrintingShowsASecret(t *testing.T) {
	f, err := Parse("f.yaml", []byte(secrets), canaries)
	if err != nil {
		t.Fatal(err)
	}
	printed := map[string]string{"Effective": f.Effective(), "warnings": f.Warnings.Error()}
	things := []any{
		f, *f, f.Web, f.Web.Tokens, f.Web.Tokens[0].Token, &f.Web.Tokens[0].Token, f.Feeds, f.Feeds[0], f.Feeds[0].Headers, f.Feeds[0].Params,
		f.Feeds[0].Key, f.Feeds[1].URL, &f.Feeds[1].URL, f.Redis, f.Redis.URL, f.Feeds[1].Sinks,
		map[string]Secret{"k": f.Feeds[0].Key}, holder{f.Redis.URL, f.Feeds[1].Params}, []any{f.Feeds[0].Key},
	}
	for i, thing := range things {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%c", "%e", "%o", "%U", "%10.3v", "%T"} {
			printed[fmt.Sprintf("%d %s", i, verb)] = fmt.Sprintf(verb, thing)
		}
		if _, private := thing.(holder); private {
			continue
		}
		asJSON, err := json.Marshal(thing)
		if err != nil {
			t.Fatal(err)
		}
		printed[fmt.Sprintf("%d json", i)] = string(asJSON)
		asYAML, err := yaml.Marshal(thing)
		if err != nil {
			t.Fatal(err)
		}
		printed[fmt.Sprintf("%d yaml", i)] = string(asYAML)
		var text, lines bytes.Buffer
		slog.New(slog.NewTextHandler(&text, nil)).Info("config", "thing", thing)
		slog.New(slog.NewJSONHandler(&lines, nil)).Info("config", "thing", thing)
		printed[fmt.Sprintf("%d slog text", i)] = text.String()
		printed[fmt.Sprintf("%d slog json", i)] = lines.String()
	}
	asXML, err := xml.Marshal(f.Web.Tokens)
	if err != nil {
		t.Fatal(err)
	}
	printed["xml"] = string(asXML)
	for how, text := range printed {
		hex := fmt.Sprintf("%x", "canary")
		for _, form := range []string{"canary", hex, strings.ToUpper(hex), fmt.Sprintf("%v", []byte("canary"))[1:15]} {
			if strings.Contains(text, form) {
				t.Errorf("%s shows a secret: %.300s", how, text)
			}
		}
	}
	if !strings.Contains(printed["Effective"], "X-From-Env: x ${HEADER}") || !strings.Contains(printed["Effective"], "Accept: plain/text") {
		t.Errorf("what is no secret should be shown:\n%s", printed["Effective"])
	}
}

func TestRevealGivesTheSecret(t *testing.T) {
	f, err := Parse("f.yaml", []byte(secrets), canaries)
	if err != nil {
		t.Fatal(err)
	}
	a, b := feedNamed(t, f, "a"), feedNamed(t, f, "b")
	for got, want := range map[string]string{
		f.Redis.URL.Reveal():               "redis://user:canary-redis@localhost:6379/0",
		f.Web.Tokens[0].Token.Reveal():     "canary-token-0123456789",
		a.Key.Reveal():                     "canary-key-0123456789",
		a.Headers["X-From-Env"].Reveal():   "x canary-header-0123456789",
		a.SourceConfig().Params["hl"]:      "canary-param-0123456789",
		b.URL.Reveal():                     "https://example.org/?a=b&api_key=canary-literal-query&t=canary-query-0123456789",
		b.Sinks[0].Secret.Reveal():         "canary-sink-0123456789",
		b.Sinks[0].Webhook.Reveal():        "https://example.org/canary-hook-0123456789?token=canary-hook",
		b.Params["access_token"].Reveal():  "canary-literal-param",
		a.SourceConfig().Headers["Accept"]: "plain/text",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	// What the environment gave is told to whoever reads answers, that may echo it.
	if got := b.SourceConfig().Secrets; !slices.Contains(got, "canary-query-0123456789") {
		t.Errorf("the source's secrets: %q", got)
	}
	if got := a.SourceConfig().Secrets; !slices.Contains(got, "canary-param-0123456789") || !slices.Contains(got, "canary-header-0123456789") {
		t.Errorf("the source's secrets: %q", got)
	}
}

func TestValuesAreShownAsTheFileHasThem(t *testing.T) {
	f, err := Parse("f.yaml", []byte(secrets), canaries)
	if err != nil {
		t.Fatal(err)
	}
	b := feedNamed(t, f, "b")
	for got, want := range map[string]string{
		f.Redis.URL.String():              "redis://user:[redacted]@localhost:6379/0",
		b.URL.String():                    "https://example.org/?a=b&api_key=[redacted]&t=${QUERY}",
		b.Params["access_token"].String(): "[redacted]",
		Secret("").String():               "",
		Value{}.String():                  "",
		fmt.Sprintf("%#v", Secret("x")):   `"[redacted]"`,
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
