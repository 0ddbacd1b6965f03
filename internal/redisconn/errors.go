package redisconn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

var (
	// ErrClosed: the Conn was closed.
	ErrClosed = errors.New("closed")
	// ErrTooOld: the server is older than Redis 6.2.
	ErrTooOld = errors.New("older than 6.2")
)

// URLError is a fault of redis.url.
type URLError struct{ Problem, Want string }

func (e *URLError) Error() string { return "redis.url " + e.Problem + "; want " + e.Want }

// StartError says why a Redis cannot be used: which, what is wrong, what to do.
type StartError struct {
	Where, Problem, Advice string
	Err                    error // may be nil
}

func (e *StartError) Error() string {
	return fmt.Sprintf("redis (%s): %s; %s", e.Where, e.Problem, e.Advice)
}

func (e *StartError) Unwrap() error { return e.Err }

// explain finds what is wrong behind an error of the first call, and what a
// person can do about it.
func explain(err error, t target) (problem, advice string) {
	text := flat(err)
	var (
		dns       *net.DNSError
		file      *fileError
		cert      *tls.CertificateVerificationError
		hostname  x509.HostnameError
		notTLS    tls.RecordHeaderError
		timeout   net.Error
		redisSays redis.Error
	)
	switch {
	case errors.As(err, &file):
		return text, "name PEM files that this process can read"
	case errors.As(err, &hostname):
		return text, "use the name that the certificate is for, or give it as ?server_name="
	case errors.As(err, &cert):
		return text, "give the file of the authority that signed it as ?ca="
	case errors.As(err, &notTLS):
		return "the server does not speak TLS there", "use redis:// or the server's TLS port"
	case strings.Contains(text, "certificate required"), strings.Contains(text, "bad certificate"):
		return "the server wants a client certificate it trusts", "give it as ?cert= and &key="
	case strings.Contains(text, "WRONGPASS"):
		return "the server refuses the user or password", "correct them in redis.url"
	case strings.Contains(text, "NOAUTH"):
		return "the server wants a password", missingPassword(t)
	case strings.Contains(text, "NOPERM"):
		return text, "let this user run all commands on the keys fw:* and asynq:* and on all channels"
	case strings.Contains(text, "cluster support disabled"):
		return "the server is not part of a Cluster", "use redis://"
	case strings.Contains(text, "cluster has no nodes"):
		return "no node of the Cluster serves any slots", "finish making the Cluster, or correct the hosts in redis.url"
	case strings.Contains(text, "DB index is out of range"):
		return "the server has no such database", "use a smaller number at the end of redis.url"
	case t.kind == kindSentinel && errors.Is(err, redis.Nil):
		return fmt.Sprintf("the Sentinels know no primary %q", t.primary), "correct the name at the end of redis.url"
	case errors.As(err, &dns):
		return fmt.Sprintf("no address is known for the host %q", dns.Name), "correct the host in redis.url"
	case errors.Is(err, syscall.ECONNREFUSED):
		return text, "start the server, or correct redis.url"
	case errors.Is(err, os.ErrNotExist):
		return text, "start the server, or correct the socket's path in redis.url"
	case errors.Is(err, os.ErrPermission):
		return text, "let this user open it"
	case t.tls == nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		return "the server hangs up", "use rediss:// if it speaks TLS; see its log"
	case errors.Is(err, context.Canceled):
		return "the start was cancelled before it answered", "try again"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		if t.tls != nil {
			return "no answer in time (" + text + ")", "check the host and the port; if the server does not speak TLS there, use redis://"
		}
		return "no answer in time (" + text + ")", "check the host, the port, and what lies between"
	case redis.HasErrorPrefix(err, "MISCONF"):
		return text, "make room on the server's disk; it takes writes again by itself"
	case errors.As(err, &redisSays):
		return text, "see the server's log"
	}
	return text, "check redis.url and the server's log"
}

func missingPassword(t target) string {
	switch {
	case t.kind == kindSentinel && t.password != "" && t.sentinelPassword == "":
		return "if it is the Sentinels who ask, add ?sentinel_password="
	case t.kind == kindEmbedded:
		return "remove what configures the redis-server besides us"
	}
	return "write it into redis.url as :PASSWORD@ or USER:PASSWORD@"
}

// flat brings an error that joins several into one line, each said once.
func flat(err error) string {
	var lines []string
	seen := map[string]bool{}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
