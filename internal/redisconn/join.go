package redisconn

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	redisServer     = "redis-server"
	miniredisServer = "miniredis"
	joinVersion     = 1
)

// joinRecord is the join file: how to reach the embedded server of a data
// directory. It is a hint: whoever reads it must bear that the server is gone.
type joinRecord struct {
	Version  int       `json:"version"`
	Server   string    `json:"server"` // redis-server or miniredis
	Network  string    `json:"network"`
	Address  string    `json:"address"`
	Password string    `json:"password,omitempty"` // of miniredis; the socket is guarded by its directory
	RunID    string    `json:"run_id"`             // new with each start of a server
	OwnerPID int       `json:"owner_pid"`
	PID      int       `json:"server_pid"` // the owner's own with miniredis
	Started  time.Time `json:"started"`
}

func newJoinRecord(server, network, address string) joinRecord {
	return joinRecord{
		Version: joinVersion, Server: server, Network: network, Address: address,
		RunID: rand.Text(), OwnerPID: os.Getpid(), PID: os.Getpid(), Started: time.Now().UTC(),
	}
}

// write replaces the file as a whole, readable by its owner alone.
func (r joinRecord) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ") //nolint:gosec // the password is what the file is for; mode 0600
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func readJoinRecord(path string) (joinRecord, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return joinRecord{}, err
	}
	var r joinRecord
	if err := json.Unmarshal(text, &r); err != nil {
		return joinRecord{}, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	if r.Version != joinVersion {
		return joinRecord{}, fmt.Errorf("%s has version %d, and this feedwarden reads %d: run the same version in all processes", path, r.Version, joinVersion)
	}
	return r, nil
}

// dial connects, and gives the password: address and password are then always
// of the same server, whatever happens to the file meanwhile.
func (r joinRecord) dial(ctx context.Context) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, r.Network, r.Address)
	if err != nil || r.Password == "" {
		return conn, err
	}
	if reply, err := exchange(ctx, conn, "AUTH", r.Password); err != nil || reply != "+OK" {
		_ = conn.Close()
		if err == nil {
			err = fmt.Errorf("the server at %s is not the one of the join file", r.Address)
		}
		return nil, &net.OpError{Op: "dial", Net: r.Network, Err: err}
	}
	return conn, nil
}

// alive asks the server for a sign of life. One that is loading its data lives,
// and one whose disk is full: it can be read, and says itself what it refuses.
func (r joinRecord) alive(ctx context.Context) error {
	conn, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	reply, err := exchange(ctx, conn, "PING")
	if err == nil && reply != "+PONG" && !strings.HasPrefix(reply, "-LOADING") && !strings.HasPrefix(reply, "-MISCONF") {
		err = fmt.Errorf("%s answers %q to PING", r.Address, reply)
	}
	return err
}

// settleWait is longer than a server that was just restarted reads a usual file.
const settleWait = time.Second

// settle waits a little for a server that is loading its data: go-redis's own
// retries of LOADING are over within a tenth of a second.
func settle(ctx context.Context, conn net.Conn) error {
	for began := time.Now(); ; {
		reply, err := exchange(ctx, conn, "PING")
		if err != nil || !strings.HasPrefix(reply, "-LOADING") || time.Since(began) > settleWait || ctx.Err() != nil {
			return err
		}
		pause(ctx, 10*time.Millisecond)
	}
}

const exchangeTimeout = 2 * time.Second

// exchange sends one command and reads a reply of one line, no byte further.
func exchange(ctx context.Context, conn net.Conn, args ...string) (string, error) {
	limit := time.Now().Add(exchangeTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(limit) {
		limit = d
	}
	_ = conn.SetDeadline(limit)
	defer func() { _ = conn.SetDeadline(time.Time{}) }()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := conn.Write([]byte(b.String())); err != nil {
		return "", err
	}
	var line []byte
	for one := make([]byte, 1); ; {
		if _, err := conn.Read(one); err != nil {
			return "", err
		}
		if one[0] == '\n' {
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		if line = append(line, one[0]); len(line) > 4096 {
			return "", fmt.Errorf("the server at %s does not speak Redis's protocol", conn.RemoteAddr())
		}
	}
}
