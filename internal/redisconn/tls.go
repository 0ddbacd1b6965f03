package redisconn

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// tlsFiles are the PEM files of a TLS connection; "" is none. They are read at
// each dial, so a renewed certificate needs no restart.
type tlsFiles struct{ ca, cert, key, serverName string }

// config checks the server against ca, or the system's roots. The name checked
// is serverName, or else the dialed host.
func (f tlsFiles) config() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.serverName}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, &fileError{"ca", err}
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &fileError{"ca", fmt.Errorf("%s holds no PEM certificate", f.ca)}
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, &fileError{"cert and key", err}
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// fileError is a TLS file of the URL that cannot be used.
type fileError struct {
	param string
	err   error
}

func (e *fileError) Error() string { return fmt.Sprintf("the URL's %s: %v", e.param, e.err) }
func (e *fileError) Unwrap() error { return e.err }
