package source

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var releases = Config{
	Kind: "json", URL: "https://api.example.org/releases?per=5", Items: ".data[]",
	Map: map[string]string{"id": ".id", "title": ".name", "url": ".html_url", "published": ".created_at", "assets": ".assets | length"},
}

func TestJSONCorpus(t *testing.T) {
	for file, tt := range map[string]struct {
		c       Config
		items   []string
		dropped int
		want    AnswerKind
	}{
		"data.json": {releases, []string{
			"1 | https://api.example.org/releases/1 | v1.0 | 2026-11-30T08:00:00Z",
			"2 | https://api.example.org/releases/2 | v1.1 | 2026-11-30T08:00:00Z",
			"3 |  |  | null",
		}, 0, ""},
		"top-level.json": {Config{Items: ".[]"}, []string{
			"a | https://x.example/a | A | 2026-11-30T00:00:00Z",
			"https://x.example/b | https://x.example/b | no id | null",
			"#",
		}, 2, ""},
		"big-numbers.json": {Config{Items: ".rows[]", Map: map[string]string{"id": ".id", "ratio": ".ratio", "bad": "infinite"}}, []string{
			"9007199254740993 |  |  | null",
			"123456789012345678901234567890 |  |  | null",
		}, 0, ""},
		"millis.json": {Config{Items: ".hits.hits[] | ._source + {id: ._id}", Map: map[string]string{"published": ".t"}}, []string{
			"x |  | ms | 2026-11-30T08:00:00Z",
			"y |  | text seconds | 2026-11-30T08:00:00Z",
		}, 0, ""},
		"truncated.json": {releases, nil, 0, Truncated},
		"page.html":      {releases, nil, 0, NotAFeed},
	} {
		t.Run(file, func(t *testing.T) {
			tt.c.Kind, tt.c.URL = "json", releases.URL
			s := build(t, tt.c)
			a, err := s.Read(answerTo(t, s, Page{}, 200, recorded(t, "json", file)))
			if tt.want != "" {
				wantAnswer(t, err, tt.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, it := range a.Items {
				if want := tt.items[i]; brief(it) != want && !(want == "#" && strings.HasPrefix(it.ID, "sha256:")) {
					t.Errorf("item %d\n got %s\nwant %s", i, brief(it), want)
				}
				if it.Rank != i+1 {
					t.Errorf("rank %d of item %d", it.Rank, i)
				}
				if _, err := json.Marshal(it); err != nil {
					t.Errorf("cannot be stored: %v", err)
				}
			}
			if len(a.Items) != len(tt.items) || a.Dropped != tt.dropped {
				t.Errorf("%d items, %d dropped", len(a.Items), a.Dropped)
			}
		})
	}
}

func TestJSONFields(t *testing.T) {
	s := build(t, releases)
	a, err := s.Read(answerTo(t, s, Page{}, 200, recorded(t, "json", "data.json")))
	if err != nil {
		t.Fatal(err)
	}
	if a.Items[0].Fields["assets"] != 2 || a.Items[1].Fields["assets"] != 0 || len(a.Items[0].Fields) != 1 {
		t.Errorf("%v, %v", a.Items[0].Fields, a.Items[1].Fields)
	}
	s = build(t, Config{Kind: "json", URL: releases.URL, Items: ".rows[]", Map: map[string]string{"score": ".score", "n": ".id", "bad": "nan"}})
	a, err = s.Read(answerTo(t, s, Page{}, 200, recorded(t, "json", "big-numbers.json")))
	if err != nil {
		t.Fatal(err)
	}
	f := a.Items[1].Fields
	if n, ok := f["n"].(*big.Int); !ok || n.String() != "123456789012345678901234567890" || f["score"] != nil || f["bad"] != nil {
		t.Errorf("%v", f)
	}
}

func TestJSONAnswersThatDoNotFit(t *testing.T) {
	for name, tt := range map[string]struct {
		items, title, body string
		want               AnswerKind
	}{
		"an error object":         {".data[]", ".name", `{"error":"no"}`, NotAFeed},
		"no list where one was":   {".data[]", ".name", `{"data":7}`, NotAFeed},
		"a field fits no item":    {".data[]", ".name.first", `{"data":[{"name":"x"},{"name":"y"}]}`, NotAFeed},
		"two values":              {".data[]", ".name", `{"data":[]} {"data":[]}`, NotAFeed},
		"error by the program":    {`error("no")`, ".name", `{}`, NotAFeed},
		"nothing":                 {".data[]", ".name", ``, NotAFeed},
		"cut short within a text": {".data[]", ".name", `{"data":[{"name":"x`, Truncated},
	} {
		s := build(t, Config{Kind: "json", URL: releases.URL, Items: tt.items, Map: map[string]string{"title": tt.title}})
		_, err := s.Read(answerTo(t, s, Page{}, 200, []byte(tt.body)))
		t.Logf("%s: %v", name, wantAnswer(t, err, tt.want))
	}
	// One item that a field does not fit costs that field alone.
	s := build(t, Config{Kind: "json", URL: releases.URL, Items: ".[]", Map: map[string]string{"id": ".id", "title": ".name.first"}})
	a, err := s.Read(answerTo(t, s, Page{}, 200, []byte(`[{"id":1,"name":{"first":"x"}},{"id":2,"name":"y"}]`)))
	if err != nil || len(a.Items) != 2 || a.Items[0].Title != "x" || a.Items[1].Title != "" {
		t.Errorf("%v %+v", err, a.Items)
	}
	// One without an ID is known by what it holds; but where none has one any more, the API has changed.
	a, err = s.Read(answerTo(t, s, Page{}, 200, []byte(`[{"id":1,"name":{"first":"x"}},{"name":{"first":"y"}}]`)))
	if err != nil || len(a.Items) != 2 {
		t.Errorf("%v %+v", err, a.Items)
	}
	_, err = s.Read(answerTo(t, s, Page{}, 200, []byte(`[{"key":1,"name":{"first":"x"}},{"key":2,"name":{"first":"y"}}]`)))
	if e := wantAnswer(t, err, NotAFeed); !strings.Contains(e.Error(), "map.id, .id,") {
		t.Error(e)
	}
	// An empty list is an answer.
	a, err = s.Read(answerTo(t, s, Page{}, 200, []byte(`[]`)))
	if err != nil || len(a.Items) != 0 {
		t.Errorf("%v %+v", err, a)
	}
}

func TestProgramsSeeTheirInputAlone(t *testing.T) {
	t.Setenv("FW_TEST_SECRET", "secret")
	for _, expr := range []string{"env.FW_TEST_SECRET", "$ENV.FW_TEST_SECRET", `env | keys | length | if . > 0 then "seen" else null end`} {
		p, err := compile("items", expr)
		if err != nil {
			continue
		}
		if v, err := p.first(t.Context(), map[string]any{}); v != nil {
			t.Errorf("%s sees %v, %v", expr, v, err)
		}
	}
	for _, expr := range []string{"input", "inputs", "input_filename", `import "x" as x; .`, "$__prog_args"} {
		p, err := compile("items", expr)
		if err != nil {
			continue
		}
		if v, err := p.first(t.Context(), map[string]any{}); err == nil && v != nil {
			t.Errorf("%s gives %v", expr, v)
		}
	}
}

func TestProgramsAreBoundedInTime(t *testing.T) {
	for _, items := range []string{"range(1e15) | select(false)", "def f: f; f", "[repeat(1) | select(. == 0)]", "last(range(1e15))"} {
		s := build(t, Config{Kind: "json", URL: releases.URL, Items: items}).(*watched).Source.(*jsonAPI)
		s.patience = 50 * time.Millisecond
		started := time.Now()
		_, err := s.Read(answerTo(t, s, Page{}, 200, []byte(`{}`)))
		wantAnswer(t, err, NotAFeed)
		if took := time.Since(started); took > 20*time.Second {
			t.Errorf("%s took %v", items, took)
		}
	}
	// A program without an end is cut at the cap.
	s := build(t, Config{Kind: "json", URL: releases.URL, Items: "range(1e15) | {id: .}", MaxItems: 10})
	a, err := s.Read(answerTo(t, s, Page{}, 200, []byte(`{}`)))
	if err != nil || len(a.Items) != 10 || !a.Capped {
		t.Errorf("%v, %d items", err, len(a.Items))
	}
}

func TestProgramsAreBoundedInWhatTheyGive(t *testing.T) {
	t.Parallel()
	read := func(c Config, doc string) (Answer, error) {
		c.Kind, c.URL = "json", releases.URL
		s := build(t, c).(*watched).Source.(*jsonAPI)
		s.patience, s.most = time.Minute, 1<<20
		return s.Read(answerTo(t, s, Page{}, 200, []byte(doc)))
	}
	rows := func(n int) string {
		return `{"rows":[` + strings.Repeat(`{"id":1,"text":"`+strings.Repeat("x", 100)+`"},`, n) + `{"id":1001}]}`
	}
	for name, c := range map[string]Config{
		"each item with all of them":     {Items: `. as $all | .rows[] | .all = $all`, Map: map[string]string{"id": ".id", "all": ".all"}},
		"the same, whole":                {Items: `. as $all | range(1000) | {id: ., all: $all}`},
		"and to be named by its content": {Items: `. as $all | range(1000) | {all: $all}`, Map: map[string]string{"title": "1"}},
		"one long text":                  {Items: `.rows[0]`, Map: map[string]string{"id": ".id", "text": `"x" * 2000000`}},
	} {
		_, err := read(c, rows(200))
		wantAnswer(t, err, NotAFeed)
		if err == nil || !strings.Contains(err.Error(), "more than 1 MiB") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, doc := range map[string]string{"less than the bound": rows(20), "a long answer": rows(20_000)} {
		if a, err := read(Config{Items: `. as $all | range(2) | {id: ., all: $all}`}, doc); err != nil || len(a.Items) != 2 {
			t.Errorf("twice %s: %v, %d items", name, err, len(a.Items))
		}
	}
}

func TestItemsWithoutAMapHoldOnlyWhatJSONCan(t *testing.T) {
	t.Parallel()
	s := build(t, Config{Kind: "json", URL: releases.URL, Items: `{id: 1, a: nan, b: [-infinite, 2]}`})
	a, err := s.Read(answerTo(t, s, Page{}, 200, []byte(`{}`)))
	if err != nil || len(a.Items) != 1 {
		t.Fatalf("%+v %v", a, err)
	}
	if text, err := json.Marshal(a.Items); err != nil {
		t.Errorf("%s %v", text, err)
	}
}

func TestReadsJSONThatAnotherProgramWrote(t *testing.T) {
	s := build(t, Config{Kind: "json", URL: releases.URL, Items: ".rows[]"})
	rapid.Check(t, func(rt *rapid.T) {
		type row struct {
			ID        int64     `json:"id"`
			Title     string    `json:"title"`
			Published time.Time `json:"published"`
		}
		rows := []row{}
		for i := range rapid.IntRange(0, 9).Draw(rt, "n") {
			rows = append(rows, row{rapid.Int64().Draw(rt, "id")/16*16 + int64(i), rapid.String().Draw(rt, "title"), now.Add(time.Duration(i))})
		}
		body, err := json.Marshal(map[string]any{"rows": rows})
		if err != nil {
			rt.Fatal(err)
		}
		a, err := s.Read(answerTo(t, s, Page{}, 200, body))
		if err != nil || len(a.Items)+a.Dropped != len(rows) {
			rt.Fatalf("%v, %d of %d", err, len(a.Items), len(rows))
		}
		for i, it := range a.Items {
			if a.Dropped == 0 && (it.ID != big.NewInt(rows[i].ID).String() || it.Title != strings.TrimSpace(rows[i].Title) || !it.Published.Equal(rows[i].Published)) {
				rt.Fatalf("%s of %+v", brief(it), rows[i])
			}
		}
	})
}

// What an API counted is what a script reads, however often it was written down between.
func TestWholeNumbersStayExactThroughEveryRecord(t *testing.T) {
	s := build(t, Config{Kind: "json", URL: "https://x.example/", Items: ".[]"})
	const numbers = `{"big":123456789012345678901234567890,"deep":[{"n":-9007199254740993}],"half":0.5,"n":9007199254740993,"snow":18446744073709551615}`
	a, err := s.Read(answerTo(t, s, Page{}, 200, []byte("["+numbers+"]")))
	if err != nil {
		t.Fatal(err)
	}
	items := a.Items
	for range 3 {
		text, err := json.Marshal(items)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), numbers) {
			t.Fatalf("%s does not hold %s", text, numbers)
		}
		items = nil
		if err := json.Unmarshal(text, &items); err != nil {
			t.Fatal(err)
		}
	}
}
