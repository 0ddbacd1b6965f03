package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestOffLoopbackAsksForTokens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen   string
		insecure bool
		tokens   []Token
		refused  bool
	}{
		{"127.0.0.1:8080", false, nil, false},
		{"localhost:8080", false, nil, false},
		{"[::1]:8080", false, nil, false},
		{"127.9.9.9:0", false, nil, false},
		{"[::ffff:127.0.0.1]:80", false, nil, false},
		{":8080", false, nil, true},
		{"0.0.0.0:8080", false, nil, true},
		{"[::]:8080", false, nil, true},
		{"192.0.2.7:8080", false, nil, true},
		{"feeds.example.org:8080", false, nil, true},
		{"0.0.0.0:8080", true, nil, false},
		{"0.0.0.0:8080", false, threeTokens, false},
	} {
		err := Config{Listen: c.listen, Insecure: c.insecure, Tokens: c.tokens}.check()
		if c.refused != errors.Is(err, ErrOpen) || (!c.refused && err != nil) {
			t.Errorf("listen %s, insecure %v, %d tokens: %v; refused should be %v", c.listen, c.insecure, len(c.tokens), err, c.refused)
		}
	}
	if _, err := New(Config{Listen: ":8080"}, Parts{}); !errors.Is(err, ErrOpen) {
		t.Errorf("New: %v, want ErrOpen", err)
	}
}

func TestConfigSaysEveryFaultAtOnceAndNoToken(t *testing.T) {
	t.Parallel()
	err := Config{
		Listen: "nonsense", Hosts: []string{"http://feeds.example.org/"},
		Tokens: []Token{{"", "0123456789abcdef", Read}, {"a", "short-secret", "root"}, {"a", "0123456789abcdef", Write}, {"b", "0123456789abcdeg ", Write}, {"c", "0123456789abcdef", Admin}},
	}.check()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{"nonsense", "http://feeds.example.org/", "has no name", `role "root"`, "16 at least", "two have this name", "begins or ends with a blank", "same text"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in %v", part, err)
		}
	}
	for _, secret := range []string{"short-secret", "0123456789abcde"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("a token stands in %v", err)
		}
	}
}

func TestTokensDoNotPrint(t *testing.T) {
	t.Parallel()
	tok := threeTokens[0]
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "token", tok)
	b, err := json.Marshal(tok)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(tok), fmt.Sprintf("%+v %#v", tok, tok), fmt.Sprintf("%+v", Config{Tokens: threeTokens}), log.String(), string(b)} {
		if strings.Contains(text, readToken) {
			t.Errorf("the token stands in %s", text)
		}
	}
}

func TestServerForgetsTheTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	if text := fmt.Sprintf("%+v %+v", w.server.cfg, w.server.access.keys); strings.Contains(text, readToken) || strings.Contains(text, "reader") && w.server.cfg.Tokens != nil {
		t.Error("the server still has the tokens' texts")
	}
}
