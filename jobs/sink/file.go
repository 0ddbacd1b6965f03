package sink

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
)

// errBusy says that another delivery writes the same file now.
var errBusy = errors.New("another delivery is writing this file")

// writeFile puts a version into its file: a hidden neighbour is written, synced
// and renamed, so that nothing is ever half under its name. The neighbour's name
// is the version's own; whoever writes it holds a lock that ends with its
// process, so what a killed one left is written over.
func writeFile(template string, d Delivery) error {
	f, err := formatOf(template)
	if err != nil {
		return &Error{Permanent: true, Err: err}
	}
	fixed, rest := split(filepath.ToSlash(template))
	if fixed == "" {
		fixed = "."
	}
	fixed = filepath.FromSlash(fixed)
	if err := os.MkdirAll(fixed, 0o755); err != nil { //nolint:gosec // other programs read what is there
		return err
	}
	root, err := os.OpenRoot(fixed)
	if err != nil {
		return err
	}
	defer root.Close()
	name, dated := d.names(rest)
	if err := writeAs(root, name, f, d, false); !errors.Is(err, errTaken) {
		return err
	}
	return writeAs(root, dated, f, d, true)
}

// errTaken says that a file of this name has other bytes: those of a version
// that had the same number before Redis lost its data.
var errTaken = errors.New("a file of another version has this name")

// writeAs writes one file; errTaken where the name has other bytes and may not
// be written over.
func writeAs(root *os.Root, name string, f format, d Delivery, over bool) error {
	dir := path.Dir(name)
	part := path.Join(dir, "."+path.Base(name)+".part")
	fresh := false
	if _, err := root.Stat(dir); err != nil {
		fresh = true
		if err := root.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as above
			return err
		}
	}
	out, err := openPart(root, part)
	if err != nil {
		return err
	}
	defer out.Close()
	err = fill(out, f, d)
	if err == nil && !over && taken(root, name, out) {
		err = errTaken
	}
	if err != nil {
		_ = root.Remove(part)
		return err
	}
	if err := root.Rename(part, name); err != nil {
		_ = root.Remove(part)
		return err
	}
	return syncDirs(root, dir, fresh)
}

func fill(out *os.File, f format, d Delivery) error {
	if err := out.Truncate(0); err != nil {
		return err
	}
	if err := f.write(out, d); err != nil {
		return err
	}
	return out.Sync()
}

// taken says that a file stands under the name whose bytes are not those of out.
func taken(root *os.Root, name string, out *os.File) bool {
	there, err := root.Lstat(name)
	if err != nil || !there.Mode().IsRegular() {
		return false
	}
	mine, err := out.Stat()
	if err != nil || mine.Size() != there.Size() {
		return true
	}
	old, err := root.Open(name)
	if err != nil {
		return true
	}
	defer old.Close()
	return !sameBytes(old, io.NewSectionReader(out, 0, mine.Size()))
}

func sameBytes(a, b io.Reader) bool {
	const piece = 64 << 10
	x, y := make([]byte, piece), make([]byte, piece)
	for {
		n, errA := io.ReadFull(a, x)
		m, errB := io.ReadFull(b, y)
		if n != m || !bytes.Equal(x[:n], y[:m]) {
			return false
		}
		if n < piece {
			return ended(errA) && ended(errB)
		}
	}
}

func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// openPart opens the neighbour and locks it. Between the two another delivery
// can have renamed it: then the name stands for another file, or none.
func openPart(root *os.Root, name string) (*os.File, error) {
	for range 10 {
		f, err := root.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		if err := lock(f); err != nil {
			f.Close()
			return nil, err
		}
		mine, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		if there, err := root.Lstat(name); err == nil && os.SameFile(mine, there) {
			return f, nil
		}
		f.Close()
	}
	return nil, errBusy
}

// syncDirs makes names last: the file's, and those of new directories.
func syncDirs(root *os.Root, dir string, fresh bool) error {
	for {
		d, err := root.Open(dir)
		if err != nil {
			return err
		}
		err = d.Sync()
		d.Close()
		if err != nil {
			return fmt.Errorf("sync %s: %w", dir, err)
		}
		if !fresh || dir == "." {
			return nil
		}
		dir = path.Dir(dir)
	}
}
