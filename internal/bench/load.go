package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"time"
)

// load asks for one URL over kept connections, each as fast as it is answered,
// and gives requests a second. It speaks HTTP/1.1 with little of its own: what
// is measured is the server.
func load(ctx context.Context, target string, span time.Duration) (float64, error) {
	u, err := url.Parse(target)
	if err != nil {
		return 0, err
	}
	request := []byte("GET " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host + "\r\n\r\n")
	conns := make([]*loader, readClients)
	for i := range conns {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
		if err != nil {
			return 0, err
		}
		defer c.Close()
		conns[i] = &loader{conn: c, in: bufio.NewReaderSize(c, 64<<10)}
	}
	return parallel(ctx, readClients, span, func(worker int) error { return conns[worker].ask(request) })
}

type loader struct {
	conn net.Conn
	in   *bufio.Reader
}

func (l *loader) ask(request []byte) error {
	if _, err := l.conn.Write(request); err != nil {
		return err
	}
	line, err := l.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("answered %s", bytes.TrimSpace(line))
	}
	length, chunked := 0, false
	for {
		line, err := l.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(v)); err != nil {
				return err
			}
		}
		chunked = chunked || string(line) == "Transfer-Encoding: chunked"
	}
	if !chunked {
		_, err := io.CopyN(io.Discard, l.in, int64(length))
		return err
	}
	for {
		line, err := l.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(bytes.TrimRight(line, "\r\n")), 16, 64)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, l.in, n+2); err != nil || n == 0 {
			return err
		}
	}
}
