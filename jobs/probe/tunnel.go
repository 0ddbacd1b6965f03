package probe

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// tunnel has an http proxy open a tunnel to an http judge and asks through it:
// what https needs of a proxy, where the judge has no certificate. Errors hold
// no secret: they name stages.
func (c *Checker) tunnel(ctx context.Context, proxy *url.URL, nonce string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", proxy.Host)
	if err != nil {
		return errors.New("no connection")
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if proxy.Scheme == "https" {
		secure := tls.Client(conn, &tls.Config{ServerName: proxy.Hostname(), RootCAs: c.cfg.RootCAs, MinVersion: tls.VersionTLS12})
		if err := secure.HandshakeContext(ctx); err != nil {
			return errors.New("no TLS to the proxy")
		}
		conn = secure
	}
	authority := c.judge.Host
	if c.judge.Port() == "" {
		authority = net.JoinHostPort(c.judge.Hostname(), "80")
	}
	login := ""
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		login = "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)) + "\r\n"
	}
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", authority, authority, login); err != nil {
		return errors.New("CONNECT could not be sent")
	}
	from := bufio.NewReader(conn)
	opened, err := http.ReadResponse(from, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return errors.New("no proper answer to CONNECT")
	}
	_ = opened.Body.Close()
	if opened.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers CONNECT with %d", opened.StatusCode)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.judge.ask(nonce, true), nil)
	if err != nil {
		return errors.New("the judge's URL cannot be asked for")
	}
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	req.Close = true
	if err := req.Write(conn); err != nil {
		return errors.New("nothing can be sent through it")
	}
	resp, err := http.ReadResponse(from, req)
	if err != nil {
		return errors.New("nothing comes back through it")
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil || !bytes.Equal(body, Page(nonce)) {
		return errors.New("what comes back is not what the judge sent")
	}
	return nil
}
