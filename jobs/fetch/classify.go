package fetch

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
)

// classify finds the kind of a failure. p is how far the round trip had got,
// nil where there was none.
func classify(err error, p *progress) Kind {
	connected := p != nil && p.connected.Load()
	var (
		policy   *policyError
		follow   *followError
		proxy    *proxyAnswer
		encoding *encodingError
		op       *net.OpError
	)
	switch {
	case errors.As(err, &policy), errors.Is(err, ErrRedirects), errors.As(err, &follow):
		return KindPolicy
	case errors.Is(err, context.Canceled):
		return KindCancelled
	case errors.As(err, &proxy):
		if proxy.status == http.StatusProxyAuthRequired {
			return KindProxyAuth
		}
		return KindUnreachable
	case errors.Is(err, errTooLarge):
		return KindTooLarge
	case errors.As(err, &encoding), errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), isFlate(err):
		return KindProtocol
	case isTLS(err):
		return KindTLS
	case errors.As(err, &op) && op.Op == "socks connect":
		return classifySocks(op)
	case isTimeout(err):
		if p != nil && !connected {
			return KindConnect
		}
		return KindTimeout
	case errors.Is(err, io.ErrUnexpectedEOF) && p != nil && p.answered.Load():
		return KindTruncated
	case p != nil && !connected:
		return KindConnect
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return KindReset
	case errors.Is(err, bufio.ErrBufferFull), strings.Contains(err.Error(), "malformed"), strings.Contains(err.Error(), "unsupported"),
		strings.Contains(err.Error(), "exceeded"), strings.Contains(err.Error(), "invalid"), strings.Contains(err.Error(), "Content-Length"),
		strings.Contains(err.Error(), "too many transfer encodings"), strings.Contains(err.Error(), "chunk length too large"):
		return KindProtocol
	}
	return KindReset
}

// classifySocks tells a refused login from a target that the proxy cannot
// reach. net/http gives both as text alone (socks_bundle.go).
func classifySocks(op *net.OpError) Kind {
	text := op.Err.Error()
	for _, s := range []string{"authentication", "username/password"} {
		if strings.Contains(text, s) {
			return KindProxyAuth
		}
	}
	switch {
	case isTimeout(op.Err):
		return KindTimeout
	case strings.Contains(text, "unknown error"): // the proxy's reply code, in words
		return KindUnreachable
	}
	return KindReset
}

func isTimeout(err error) bool {
	for _, e := range []error{errTotal, errHeaders, errIdle, errSlow, context.DeadlineExceeded, os.ErrDeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func isTLS(err error) bool {
	var (
		cert  *tls.CertificateVerificationError
		rec   tls.RecordHeaderError
		alert tls.AlertError
		host  x509.HostnameError
		auth  x509.UnknownAuthorityError
		inv   x509.CertificateInvalidError
	)
	return errors.As(err, &cert) || errors.As(err, &rec) || errors.As(err, &alert) || errors.As(err, &host) ||
		errors.As(err, &auth) || errors.As(err, &inv) || strings.HasPrefix(err.Error(), "tls: ") ||
		strings.Contains(err.Error(), "remote error: tls: ") || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

func isFlate(err error) bool {
	var c flate.CorruptInputError
	return errors.As(err, &c)
}
