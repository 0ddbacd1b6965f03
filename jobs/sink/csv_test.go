package sink

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"feedwarden/jobs/source"
)

func TestCSVIsReadByPythonAsItWasWritten(t *testing.T) {
	t.Parallel()
	published := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	items := []source.Item{
		{ID: "1", URL: "https://example.org/?a=1,2", Title: "a \"quoted\", title\nin two lines", Published: &published, FirstSeen: published, Rank: 1,
			Fields: map[string]any{"views": 12345678901234.0, "ratio": 0.5, "stats": map[string]any{"likes": 3.0, "deep": map[string]any{"x": true}}, "tags": []any{"a", "b"}}},
		{ID: "-5", Title: "=HYPERLINK(\"http://evil\")", FirstSeen: published, Rank: 2, Fields: map[string]any{"id": "own", "note": "@SUM(1)", "sign": "+1", "gone": nil}},
	}
	var out bytes.Buffer
	if err := WriteCSV(&out, items); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.ReplaceAll(out.String(), "\r\n", ""), "\r") || !strings.HasSuffix(out.String(), "\r\n") {
		t.Errorf("lines do not end in CRLF: %q", out.String())
	}
	cmd := exec.Command("python3", "-c", "import csv,json,sys,io; print(json.dumps(list(csv.reader(io.TextIOWrapper(sys.stdin.buffer, newline='', encoding='utf-8'), strict=True))))")
	cmd.Stdin = bytes.NewReader(out.Bytes())
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"id", "url", "title", "published", "first_seen", "rank", "gone", "fields.id", "note", "ratio", "sign", "stats.deep.x", "stats.likes", "tags", "views"},
		{"1", "https://example.org/?a=1,2", "a \"quoted\", title\r\nin two lines", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", "1", "", "", "", "0.5", "", "true", "3", `["a","b"]`, "12345678901234"},
		{"-5", "", "'=HYPERLINK(\"http://evil\")", "", "2026-01-02T03:04:05Z", "2", "", "own", "'@SUM(1)", "", "+1", "", "", "", ""},
	}
	got, _ := json.Marshal(rows)
	exp, _ := json.Marshal(want)
	if !bytes.Equal(got, exp) {
		t.Errorf("python reads\n%s\nwant\n%s", got, exp)
	}
}

// Items come from the store: their numbers are as it gives them.
func TestCSVHasWholeNumbersToTheirLastDigitAndOneColumnOneValue(t *testing.T) {
	t.Parallel()
	const stored = `[{"id":"a","fields":{"n":9007199254740993,"m":-123456789012345678901234567890,"f":1e21,"s":{"v":1},"s.v":2}}]`
	for range 20 {
		var items []source.Item
		if err := json.Unmarshal([]byte(stored), &items); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := WriteCSV(&out, items); err != nil {
			t.Fatal(err)
		}
		if want := ",1e+21,-123456789012345678901234567890,9007199254740993,2\r\n"; !strings.HasSuffix(out.String(), want) {
			t.Fatalf("%q, want it to end in %q", out.String(), want)
		}
	}
}

func TestCSVOfNothingHasItsFixedColumns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := WriteCSV(&out, nil); err != nil || out.String() != "id,url,title,published,first_seen,rank\r\n" {
		t.Errorf("%q %v", out.String(), err)
	}
}

func FuzzNoCellBeginsAFormula(f *testing.F) {
	for _, s := range []string{"=1", "+x", "-5", "@a", "\tx", "plain", "", "\r="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := safe(text)
		if strings.TrimPrefix(got, "'") != text && got != text {
			t.Errorf("%q becomes %q", text, got)
		}
		if got != "" && strings.ContainsRune("=@\t\r\n", rune(got[0])) {
			t.Errorf("%q may be run", got)
		}
	})
}
