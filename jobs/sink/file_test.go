package sink

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	childTemplate = "FW_SINK_TEST_FILE" // set in the environment of a child that writes until it is killed
	childFrom     = "FW_SINK_TEST_FROM"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childTemplate); path != "" {
		from, _ := strconv.ParseInt(os.Getenv(childFrom), 10, 64)
		for n := from; ; n++ {
			fmt.Println("begin", n)
			if err := writeFile(path, delivery("news", version(n, 2000, 200))); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Println("done", n)
		}
	}
	os.Exit(m.Run())
}

// unpack reads a file with programs that are not ours.
func unpack(t *testing.T, name string) []byte {
	t.Helper()
	tool := "cat"
	switch filepath.Ext(name) {
	case ".gz":
		tool = "gzip -dc"
	case ".zst":
		tool = "zstd -dcq"
	}
	out, err := exec.Command("sh", "-c", tool+` "$0"`, name).Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

func TestFileHoldsTheVersionInEveryFormatAsOtherProgramsReadIt(t *testing.T) {
	t.Parallel()
	dir, o := t.TempDir(), outlet(t, nil)
	d := delivery("news", version(7, 50, 100))
	for _, end := range []string{"ndjson", "json", "csv", "ndjson.gz", "ndjson.zst", "json.gz", "json.zst", "csv.gz", "csv.zst"} {
		deliver(t, o, Config{File: dir + "/{feed}/{date}/{version}." + end}, d)
		got := unpack(t, dir+"/news/2026-04-01/7."+end)
		var items int
		switch {
		case strings.HasPrefix(end, "ndjson"):
			for line := range strings.Lines(string(got)) {
				var it map[string]any
				if err := json.Unmarshal([]byte(line), &it); err != nil || it["id"] == "" {
					t.Fatalf("%s: %v in %q", end, err, line)
				}
				items++
			}
		case strings.HasPrefix(end, "json"):
			var doc Document
			if err := json.Unmarshal(got, &doc); err != nil || doc.Key != "news@7" || doc.Count != len(doc.Items) {
				t.Fatalf("%s: %v %+v", end, err, doc)
			}
			items = len(doc.Items)
		default:
			rows, err := csv.NewReader(bytes.NewReader(got)).ReadAll()
			if err != nil {
				t.Fatalf("%s: %v", end, err)
			}
			items = len(rows) - 1
		}
		if items != 50 {
			t.Errorf("%s: %d items", end, items)
		}
	}
}

func TestFileIsTheSameBytesEachTimeItIsDelivered(t *testing.T) {
	t.Parallel()
	dir, o := t.TempDir(), outlet(t, nil)
	for _, end := range []string{"ndjson.gz", "ndjson.zst"} {
		var before []byte
		for range 3 {
			deliver(t, o, Config{File: dir + "/{feed}-{version}." + end}, delivery("news", version(1, 3000, 50)))
			now, err := os.ReadFile(dir + "/news-1." + end)
			if err != nil {
				t.Fatal(err)
			}
			if before != nil && !bytes.Equal(before, now) {
				t.Errorf("%s has other bytes the second time", end)
			}
			before = now
		}
	}
	onlyFinalNames(t, dir)
}

func onlyFinalNames(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), ".") && p != dir {
			t.Errorf("%s is left", p)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestKillInMidWriteNeverLeavesATornFileAndTheNextTryClearsUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	template := dir + "/{feed}/{version}.ndjson"
	next, left := int64(1), 0
	for round := range 12 {
		child := exec.Command(os.Args[0], "-test.run", "^$")
		child.Env = append(os.Environ(), childTemplate+"="+template, fmt.Sprintf("%s=%d", childFrom, next))
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		begun, done := int64(0), int64(0)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			what, n, _ := strings.Cut(lines.Text(), " ")
			number, _ := strconv.ParseInt(n, 10, 64)
			if what == "done" {
				done = number
				continue
			}
			begun = number
			if begun == next+1 { // the second one: killed while it is written, at another place each round
				killWhenGrown(t, child, fmt.Sprintf("%s/news/.%d.ndjson.part", dir, begun), int64(round)*48<<10)
			}
		}
		_ = child.Wait()
		// What is there under a final name is whole, whatever the child was at.
		names, err := filepath.Glob(dir + "/news/*.ndjson")
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		whole(t, names[len(names)-1])
		if int64(len(names)) < done {
			t.Errorf("round %d: %d files, %d were done", round, len(names), done)
		}
		parts, _ := filepath.Glob(dir + "/news/.*.part")
		left += len(parts)
		if begun > done {
			// The delivery comes again in another process, as it would from the queue.
			deliver(t, outlet(t, nil), Config{File: template}, delivery("news", version(begun, 2000, 200)))
		}
		next = begun + 1
	}
	names, _ := filepath.Glob(dir + "/news/*.ndjson")
	for _, name := range names {
		whole(t, name)
	}
	onlyFinalNames(t, dir)
	t.Logf("%d files whole; %d of 12 kills left a half one under its hidden name", len(names), left)
	if left == 0 {
		t.Error("no kill met a write: the test shows nothing")
	}
}

// killWhenGrown kills a child when the file that it writes has so many bytes,
// or has got its final name.
func killWhenGrown(t *testing.T, child *exec.Cmd, part string, size int64) {
	t.Helper()
	final := filepath.Dir(part) + "/" + strings.TrimSuffix(strings.TrimPrefix(filepath.Base(part), "."), ".part")
	for deadline := time.Now().Add(20 * time.Second); ; {
		if f, err := os.Stat(part); err == nil && f.Size() >= size {
			break
		}
		if _, err := os.Stat(final); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Error("the child does not write")
			break
		}
	}
	_ = child.Process.Kill()
}

func whole(t *testing.T, name string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	in := io.Reader(f)
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
	}
	all, err := io.ReadAll(in)
	if n := bytes.Count(all, []byte("\n")); err != nil || n != 2000 {
		t.Errorf("%s is torn: %d lines, %v", name, n, err)
	}
}

func TestFilesOfOneVersionWrittenAtOnceAreWholeWhileTheyAreRead(t *testing.T) {
	t.Parallel()
	dir, o := t.TempDir(), outlet(t, nil)
	c, d := Config{File: dir + "/{feed}/{version}.ndjson.gz"}, delivery("news", version(1, 2000, 20))
	deliver(t, o, c, d)
	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				whole(t, dir+"/news/1.ndjson.gz")
			}
		}
	})
	for range 4 {
		writers.Go(func() {
			for range 10 {
				if err := o.Deliver(t.Context(), c, d); err != nil && !errors.Is(err, errBusy) {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	onlyFinalNames(t, dir)
}

func TestNoFeedNameLeadsOutOfItsDirectory(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	o := outlet(t, nil)
	for i, name := range []string{"../../etc", "..", ".", "/etc/passwd", `..\..\x`, "a/../../b", ".hidden", "x\x00y", "news?q=/../..", "%2e%2e", "ñ"} {
		c := Config{File: fmt.Sprintf("%s/%d/in/{feed}/{version}.json", base, i)}
		if err := o.Deliver(t.Context(), c, delivery(name, version(1, 1, 1))); err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		names, _ := filepath.Glob(fmt.Sprintf("%s/%d/in/*/1.json", base, i))
		all := 0
		_ = filepath.WalkDir(fmt.Sprintf("%s/%d", base, i), func(_ string, e fs.DirEntry, _ error) error {
			if !e.IsDir() {
				all++
			}
			return nil
		})
		if len(names) != 1 || all != 1 {
			t.Errorf("%q: %q of %d files", name, names, all)
		}
	}
}

func TestLinkWithinTheTreeIsNotFollowedOutOfIt(t *testing.T) {
	t.Parallel()
	inside, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, inside+"/news"); err != nil {
		t.Fatal(err)
	}
	var se *Error
	err := outlet(t, nil).Deliver(t.Context(), Config{File: inside + "/{feed}/{version}.json"}, delivery("news", version(1, 1, 1)))
	if !errors.As(err, &se) {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(outside + "/*"); len(left) > 0 {
		t.Errorf("written outside: %q", left)
	}
}

func TestFullOrReadOnlyPlaceIsAnErrorThatCanPass(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/news", []byte("a file where a directory should be"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, d := Config{File: dir + "/{feed}/{version}.json"}, delivery("news", version(1, 1, 1))
	var se *Error
	if err := outlet(t, nil).Deliver(t.Context(), c, d); !errors.As(err, &se) || se.Permanent {
		t.Fatalf("%v", err)
	}
	if err := os.Remove(dir + "/news"); err != nil {
		t.Fatal(err)
	}
	deliver(t, outlet(t, nil), c, d)
}

func TestTemplatesThatCouldWriteOverAVersionAreRefused(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"data/{feed}/{date}/{version}.ndjson.gz": true, "{feed}-{version}.csv": true, "/{feed}/{version}.json.zst": true,
		"data/{version}.json": false, "data/{feed}.json": false, "data/{feed}/{version}": false, "data/{feed}/{version}.xml": false,
		"data/{feed}/{version}.gz": false, "data/{feed}/{version}/{hour}.json": false, "{}/{feed}/{version}.json": false,
	} {
		if err := checkTemplate(text); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzNoNameLeadsOut(f *testing.F) {
	f.Add("")
	f.Add("..")
	f.Add("a/../..")
	f.Fuzz(func(t *testing.T, name string) {
		rest := "{feed}/{date}/{version}.json"
		got := render(rest, name, fetched, "1")
		if !filepath.IsLocal(got) || strings.Count(got, "/") != 2 {
			t.Errorf("%q becomes %q", name, got)
		}
	})
}
