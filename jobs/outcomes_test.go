package jobs

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"feedwarden/jobs/fetch"
	"feedwarden/jobs/source"
)

// row is how docs/outcomes.md writes one kind.
func (f Follows) row() string {
	return strings.ReplaceAll(fmt.Sprintf("| `%s` | %s | %s | %s | %s |", f.Kind, f.Means, f.Job, f.Endpoint, f.Closes), "|  |", "| |")
}

func TestTableOfOutcomesInTheDocsIsTheOneThatRuns(t *testing.T) {
	text, err := os.ReadFile("../docs/outcomes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| outcome | what happened | the job | the endpoint | the quota |\n|---|---|---|---|---|\n")
	table, _, end := strings.Cut(table, "\n\n")
	if !ok || !end {
		t.Fatal("docs/outcomes.md has no table of outcomes")
	}
	var want []string
	for _, f := range Outcomes() {
		want = append(want, f.row())
	}
	if table != strings.Join(want, "\n") {
		t.Errorf("docs/outcomes.md has\n%s\nand what runs is\n%s", table, strings.Join(want, "\n"))
	}
}

// constants are the values of a type's constants in a file.
func constants(t *testing.T, file, typ string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if id, ok := v.Type.(*ast.Ident); ok && id.Name == typ {
				s, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, s)
			}
		}
		return true
	})
	if len(out) == 0 {
		t.Fatalf("%s has no constants of type %s", file, typ)
	}
	return out
}

func TestEachKindOfOutcomeHasOneRuleAndOneRow(t *testing.T) {
	rows := map[string]int{}
	for _, f := range Outcomes() {
		rows[f.Kind]++
	}
	for _, k := range constants(t, "fetch/failure.go", "Kind") {
		if _, ok := fetchRules[fetch.Kind(k)]; !ok {
			t.Errorf("fetch's %s has no rule", k)
		}
		if rows[k] != 1 {
			t.Errorf("fetch's %s has %d rows", k, rows[k])
		}
	}
	for _, k := range constants(t, "source/failure.go", "AnswerKind") {
		if _, ok := answerRules[source.AnswerKind(k)]; !ok {
			t.Errorf("source's %s has no rule", k)
		}
		if _, both := fetchRules[fetch.Kind(k)]; both {
			k += "-answer"
		}
		if rows[k] != 1 {
			t.Errorf("source's %s has %d rows", k, rows[k])
		}
	}
	if n := len(fetchRules) + len(answerRules) + len(robotsRules); n != len(rows) {
		t.Errorf("%d rules and %d rows", n, len(rows))
	}
}

// Every form of Retry-After, on an answer to slow down and on one that failed,
// closes the quota (or the host, where there is none) until then, and the job
// sleeps as long: no try is burnt.
func TestRetryAfterInEachFormBecomesABlock(t *testing.T) {
	src, err := source.New(source.Config{Kind: "syndication", URL: "https://example.org/feed.xml"})
	if err != nil {
		t.Fatal(err)
	}
	in := func(d time.Duration) time.Time { return time.Now().Add(d).UTC() }
	for _, tt := range []struct {
		name, value string
		want        time.Duration // 0: none, the rule's own
	}{
		{"seconds", "120", 2 * time.Minute},
		{"date", in(2 * time.Minute).Format(http.TimeFormat), 2 * time.Minute},
		{"date of RFC 850", in(2 * time.Minute).Format("Monday, 02-Jan-06 15:04:05 GMT"), 2 * time.Minute},
		{"date of asctime", in(2 * time.Minute).Format(time.ANSIC), 2 * time.Minute},
		{"date that has passed", "Sun, 06 Nov 1994 08:49:37 GMT", 0},
		{"negative", "-5", 0},
		{"fraction", "1.5", 0},
		{"2^70", "1180591620717411303424", fetch.MaxRetryAfter},
		{"rubbish", "soon", 0},
		{"none", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, status := range []int{429, 503} {
				resp := &fetch.Response{Status: status, Header: http.Header{}}
				if tt.value != "" {
					resp.Header.Set("Retry-After", tt.value)
				}
				_, err := src.Read(resp)
				if err == nil {
					t.Fatal("it was read")
				}
				v := judge(err, time.Now())
				wait := tt.want
				if wait == 0 && status == 429 {
					wait = answerRules[source.QuotaRate].pause
				}
				if wait == 0 {
					if v.action != retry || v.closes || v.until != 0 {
						t.Errorf("%d: %+v, want a retry that closes nothing", status, v)
					}
					continue
				}
				if v.action != snooze || !v.closes || v.until > wait || v.until < wait-2*time.Second {
					t.Errorf("%d: action %d, closes %v, for %s, want %s", status, v.action, v.closes, v.until, wait)
				}
			}
		})
	}
}

// The day's budget does not come back sooner, whatever a header says; a later instant holds.
func TestSpentDayIsClosedToPacificMidnightWhateverRetryAfterSays(t *testing.T) {
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	for _, noon := range []time.Time{
		time.Date(2026, 3, 7, 23, 0, 0, 0, pacific), time.Date(2026, 3, 8, 1, 0, 0, 0, pacific), // 23 hours
		time.Date(2026, 11, 1, 1, 0, 0, 0, pacific), time.Date(2026, 11, 1, 12, 0, 0, 0, pacific), // 25 hours
	} {
		y, m, d := noon.Date()
		midnight := time.Date(y, m, d+1, 0, 0, 0, 0, pacific).Add(dayMargin)
		for _, after := range []time.Duration{0, time.Second, time.Hour, 30 * time.Hour} {
			want := midnight
			if late := noon.Add(after); late.After(want) {
				want = late
			}
			v := judge(&source.AnswerError{Kind: source.QuotaDay, RetryAfter: after}, noon)
			if v.action != snooze || !v.closes || !noon.Add(v.until).Equal(want) {
				t.Errorf("at %s with Retry-After %s: closed to %s, want %s", noon, after, noon.Add(v.until).In(pacific), want)
			}
		}
	}
}

func TestAnUnknownFailureIsTriedAgain(t *testing.T) {
	for _, err := range []error{errors.New("?"), &fetch.Error{Kind: "new", Err: errors.New("?")}, &source.AnswerError{Kind: "new"}} {
		if v := judge(err, time.Now()); v.action != retry {
			t.Errorf("%v: %+v", err, v)
		}
	}
}
