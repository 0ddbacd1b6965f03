package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"feedwarden/jobs"
)

// line is a result line: a job, or an error.
type line struct {
	jobs.Job
	Line         int    `json:"line"`
	Error        string `json:"error"`
	RetryAfterMS int64  `json:"retry_after_ms"`
}

func readLines(t *testing.T, r io.Reader) []line {
	t.Helper()
	var out []line
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		var l line
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatalf("line %d is not JSON: %v: %s", len(out)+1, err, sc.Text())
		}
		out = append(out, l)
	}
	if err := sc.Err(); err != nil {
		t.Fatalf("after %d lines: %v", len(out), err)
	}
	return out
}

func postLines(t *testing.T, url string, body io.Reader) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/jobs", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", ndjsonType)
	tr := &http.Transport{ExpectContinueTimeout: 5 * time.Second}
	t.Cleanup(tr.CloseIdleConnections)
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestManyJobsGoOnAfterABadLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.start()
	body := "\ufeff" + `{"feed":"news"}` + "\r\n" +
		`{"feed":"news","odd":1}` + "\n\n" +
		`{"feed":"nobody"}` + "\n" +
		`{"feed":"` + strings.Repeat("x", maxLine) + `"}` + "\n" +
		"not json\n" +
		`{"feed":"by-hand","id":"last"}`
	resp := postLines(t, url, strings.NewReader(body))
	if resp.StatusCode != 202 || resp.Header.Get("Content-Type") != ndjsonType {
		t.Fatalf("status %d, %q", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	got := readLines(t, resp.Body)
	want := []string{"news", "2 odd", "4 nobody", "5 bytes", "6 not JSON", "by-hand"}
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d: %+v", len(got), len(want), got)
	}
	for i, l := range got {
		n, word, isError := strings.Cut(want[i], " ")
		if isError && (fmt.Sprint(l.Line) != n || !strings.Contains(l.Error, word)) || !isError && (l.Feed != want[i] || l.State != jobs.Pending) {
			t.Errorf("line %d is %+v, want %s", i+1, l, want[i])
		}
	}
}

func TestManyJobsAnswerWhileTheBodyStillComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.start()
	pr, pw := io.Pipe()
	go func() { _, _ = io.WriteString(pw, `{"feed":"news","id":"first"}`+"\n") }()
	resp := postLines(t, url, pr)
	r := bufio.NewReader(resp.Body)
	text, err := r.ReadString('\n')
	if err != nil || !strings.Contains(text, `"first"`) {
		t.Fatalf("first answer %q, %v", text, err)
	}
	if _, err := io.WriteString(pw, `{"feed":"news","id":"second"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if text, err = r.ReadString('\n'); err != nil || !strings.Contains(text, `"second"`) {
		t.Fatalf("second answer %q, %v", text, err)
	}
	pw.Close()
	if _, err := r.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last: %v", err)
	}
}

func TestManyJobsEndWhenTheServerStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.start()
	pr, pw := io.Pipe()
	defer pw.Close()
	go func() { _, _ = io.WriteString(pw, `{"feed":"news","id":"first"}`+"\n") }()
	resp := postLines(t, url, pr)
	r := bufio.NewReader(resp.Body)
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := w.server.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
	if got := readLines(t, r); len(got) != 1 || got[0].Line != 2 || !strings.Contains(got[0].Error, "stopping") {
		t.Errorf("lines %+v", got)
	}
}

// A client that sends all before it reads must come to its end, though the
// answers are more than any buffer on the way holds.
func TestManyJobsForAClientThatReadsLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	c, err := net.Dial("tcp", w.server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_ = c.(*net.TCPConn).SetReadBuffer(64 << 10)
	const n = 30_000
	body := strings.Repeat(`{"odd":"`+strings.Repeat("y", 40)+"\"}\n", n)
	fmt.Fprintf(c, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n", len(body))
	if _, err := io.WriteString(c, body); err != nil {
		t.Fatalf("the body could not be sent: %v", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := readLines(t, resp.Body); len(got) != n {
		t.Errorf("%d answers, want %d", len(got), n)
	}
}

func TestManyJobsSayWhenTheQueueIsFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.start()
	resp := postLines(t, url, strings.NewReader(strings.Repeat(`{"feed":"news","priority":"scheduled"}`+"\n", 7)))
	got := readLines(t, resp.Body)
	if len(got) != 7 || got[4].Error != "" || got[5].RetryAfterMS != 5000 || !strings.Contains(got[6].Error, "full") {
		t.Errorf("lines %+v", got)
	}
}

func TestManyJobsWaitForContinue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.start()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/jobs", strings.NewReader(`{"feed":"news"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", ndjsonType)
	r.Header.Set("Expect", "100-continue")
	tr := &http.Transport{ExpectContinueTimeout: time.Minute}
	defer tr.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	resp, err := tr.RoundTrip(r.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := readLines(t, resp.Body); len(got) != 1 || got[0].Feed != "news" {
		t.Errorf("lines %+v", got)
	}
}

func TestManyJobsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, _ *Parts, p *pace) { p.body = 200 * time.Millisecond })
	url := w.start()

	resp := postLines(t, url, io.LimitReader(zeros{}, maxMany+1)) // its length is not known beforehand
	got := readLines(t, resp.Body)
	if len(got) != 1 || !strings.Contains(got[0].Error, "more than 67108864 bytes") {
		t.Errorf("lines %+v", got)
	}

	r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/jobs", io.LimitReader(zeros{}, maxMany+1))
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = maxMany + 1
	r.Header.Set("Content-Type", ndjsonType)
	r.Header.Set("Expect", "100-continue")
	tr := &http.Transport{ExpectContinueTimeout: time.Minute}
	defer tr.CloseIdleConnections()
	if resp, err = tr.RoundTrip(r); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("a length that is too much: status %d, want 413", resp.StatusCode)
	}

	// A client that stops in mid-line is told, and dropped.
	pr, pw := io.Pipe()
	defer pw.Close()
	go func() { _, _ = io.WriteString(pw, `{"feed":"news","id":"whole"}`+"\n"+`{"feed":"ne`) }()
	got = readLines(t, postLines(t, url, pr).Body)
	if len(got) != 2 || got[0].ID != "whole" || got[1].Line != 2 || !strings.Contains(got[1].Error, "could not be read to its end") {
		t.Errorf("lines %+v", got)
	}
}

func TestOnlySoManyBulkRequestsAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range bulkAtOnce {
		w.server.bulk <- struct{}{}
	}
	rec := w.post("/v1/jobs", `{"feed":"news"}`, "Content-Type", ndjsonType)
	w.wantProblem(rec, 503, "busy")
	if rec.Header().Get("Retry-After") != "1" {
		t.Error("503 without Retry-After")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestSpoolGivesWhatItWasGiven(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 20_000)
	s := newSpool()
	go s.fill(iotest.OneByteReader(strings.NewReader(text[:1000])))
	got, err := io.ReadAll(s)
	if err != nil || string(got) != text[:1000] {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	s = newSpool()
	go s.fill(iotest.DataErrReader(strings.NewReader(text)))
	if got, err = io.ReadAll(s); err != nil || string(got) != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	s = newSpool()
	s.fill(iotest.OneByteReader(strings.NewReader(text)))
	if n := len(s.chunks); n > len(text)/spoolChunk+1 {
		t.Errorf("%d bytes that came one by one take %d chunks", len(text), n)
	}
	s = newSpool()
	go s.fill(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if got, err = io.ReadAll(s); !errors.Is(err, io.ErrUnexpectedEOF) || string(got) != "abc" {
		t.Errorf("%q, %v", got, err)
	}
}
