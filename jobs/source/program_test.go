package source

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// python runs a program that writes what a source is to read.
func python(t *testing.T, program string) []byte {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "python3", "-c", program)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	return out
}

// Each reader on bytes that Python's standard library made: its own escapes,
// prefixes, dates and layout.
func TestReadsWhatPythonWrote(t *testing.T) {
	const data = `
import json, sys, email.utils, datetime
from xml.etree import ElementTree as E
when = datetime.datetime(2026, 11, 30, 8, 0, tzinfo=datetime.timezone.utc)
titles = ["Rain & <sea>", "夏 😀", "Žužemberk \"q\""]
out = sys.stdout.buffer
`
	want := []string{
		"1 | https://x.example/1?a=1&b=2 | Rain & <sea> | 2026-11-30T08:00:00Z",
		"2 | https://x.example/2?a=1&b=2 | 夏 😀 | 2026-11-30T08:00:00Z",
		"3 | https://x.example/3?a=1&b=2 | Žužemberk \"q\" | 2026-11-30T08:00:00Z",
	}
	for name, tt := range map[string]struct {
		c       Config
		program string
	}{
		"Atom with prefixes, UTF-16": {Config{Kind: "syndication", URL: "https://x.example/"}, `
ns = "{http://www.w3.org/2005/Atom}"
feed = E.Element(ns + "feed")
for i, t in enumerate(titles, 1):
    e = E.SubElement(feed, ns + "entry")
    E.SubElement(e, ns + "id").text = str(i)
    E.SubElement(e, ns + "title").text = t
    E.SubElement(e, ns + "link", href=f"/{i}?a=1&b=2")
    E.SubElement(e, ns + "published").text = when.isoformat()
E.ElementTree(feed).write(out, encoding="utf-16", xml_declaration=True)`},
		"RSS in ASCII with character references": {Config{Kind: "syndication", URL: "https://x.example/"}, `
rss = E.Element("rss", version="2.0")
channel = E.SubElement(rss, "channel")
for i, t in enumerate(titles, 1):
    e = E.SubElement(channel, "item")
    E.SubElement(e, "guid", isPermaLink="false").text = str(i)
    E.SubElement(e, "title").text = t
    E.SubElement(e, "link").text = f"https://x.example/{i}?a=1&b=2"
    E.SubElement(e, "pubDate").text = email.utils.format_datetime(when)
E.ElementTree(rss).write(out, encoding="us-ascii", xml_declaration=True)`},
		"JSON with surrogate pairs": {Config{Kind: "json", URL: "https://x.example/", Items: ".rows[]", Map: map[string]string{"published": ".at"}}, `
rows = [{"id": i, "title": t, "url": f"/{i}?a=1&b=2", "at": when.timestamp()} for i, t in enumerate(titles, 1)]
out.write(json.dumps({"rows": rows, "nan": 0}, indent=2).encode())`},
		"HTML by an XML writer": {Config{Kind: "html", URL: "https://x.example/", Items: "li", Map: map[string]string{"id": "@id", "title": "a", "url": "a@href"}}, `
html = E.Element("html")
ul = E.SubElement(E.SubElement(html, "body"), "ul")
for i, t in enumerate(titles, 1):
    li = E.SubElement(ul, "li", id=str(i))
    E.SubElement(li, "a", href=f"{i}?a=1&b=2").text = t
    E.SubElement(li, "time", datetime=when.isoformat())
E.ElementTree(html).write(out, encoding="utf-8", method="html")`},
		"a page in the program's own charset": {Config{Kind: "html", URL: "https://x.example/", Items: "li", Map: map[string]string{"id": "@id", "title": "a", "url": "a@href"}}, `
import html as h
rows = "".join(f'<li id={i}><a href="{i}?a=1&amp;b=2">{h.escape(t)}</a><time datetime={when.isoformat()}>' for i, t in enumerate(titles, 1))
out.write(("<meta charset=gb18030><ul>" + rows).encode("gb18030"))`},
		"pushed lines": {Config{Kind: "push"}, `
for i, t in enumerate(titles, 1):
    out.write(json.dumps({"id": i, "title": t, "url": f"https://x.example/{i}?a=1&b=2", "published": when.isoformat()}).encode() + b"\n")`},
		"a pushed list": {Config{Kind: "push"}, `
out.write(json.dumps([{"id": str(i), "title": t, "url": f"https://x.example/{i}?a=1&b=2", "published": when.timestamp()} for i, t in enumerate(titles, 1)], ensure_ascii=False).encode())`},
	} {
		t.Run(name, func(t *testing.T) {
			body := python(t, data+tt.program)
			var a Answer
			var err error
			if tt.c.Kind == "push" {
				a, err = ReadPushed("", body, tt.c)
			} else {
				s := build(t, tt.c)
				a, err = s.Read(answerTo(t, s, Page{}, 200, body))
			}
			if err != nil {
				t.Fatalf("%v of\n%s", err, body)
			}
			var got []string
			for _, it := range a.Items {
				got = append(got, brief(it))
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") || a.Lossy {
				t.Errorf("got\n%s\nlossy %v, of\n%s", strings.Join(got, "\n"), a.Lossy, body)
			}
		})
	}
	s := build(t, Config{Kind: "youtube", Method: "search.list", Key: testKey, Params: map[string]string{"q": "x"}})
	a, err := s.Read(answerTo(t, s, Page{}, 200, python(t, data+`
import html as h
items = [{"kind": "youtube#searchResult", "id": {"videoId": str(i)}, "snippet": {"title": h.escape(t), "publishedAt": when.strftime("%Y-%m-%dT%H:%M:%SZ")}} for i, t in enumerate(titles, 1)]
out.write(json.dumps({"kind": "youtube#searchListResponse", "items": items, "nextPageToken": None}, indent=1).encode())`)))
	if err != nil || len(a.Items) != 3 || a.Next != "" {
		t.Fatalf("%v %+v", err, a)
	}
	for i, it := range a.Items {
		if wantTitle := strings.Split(want[i], " | ")[2]; it.Title != wantTitle || it.Published == nil {
			t.Errorf("%s", brief(it))
		}
	}
}
