package testredis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates are PEM files of an authority made for one test, of a server on
// 127.0.0.1 and localhost, and of a client.
type Certificates struct {
	CA                    string
	ServerCert, ServerKey string
	ClientCert, ClientKey string
}

// TLS starts a server that speaks TLS alone on its port. With clients, it asks
// each client for a certificate of the same authority.
func TLS(t testing.TB, clients bool, args ...string) (*Server, Certificates) {
	t.Helper()
	certs := NewCertificates(t)
	ask := "no"
	if clients {
		ask = "yes"
	}
	s := onPort(t, func(port string) []string {
		return append([]string{
			"--bind", "127.0.0.1", "--tls-port", port, "--tls-auth-clients", ask,
			"--tls-ca-cert-file", certs.CA, "--tls-cert-file", certs.ServerCert, "--tls-key-file", certs.ServerKey,
		}, args...)
	})
	return s, certs
}

// NewCertificates makes an authority and a certificate for each side.
func NewCertificates(t testing.TB) Certificates {
	t.Helper()
	dir := t.TempDir()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caKey := newKey(t)
	c := Certificates{CA: filepath.Join(dir, "ca.pem")}
	writeCert(t, c.CA, ca, ca, caKey, caKey)
	c.ServerCert, c.ServerKey = issue(t, dir, "server", x509.ExtKeyUsageServerAuth, ca, caKey)
	c.ClientCert, c.ClientKey = issue(t, dir, "client", x509.ExtKeyUsageClientAuth, ca, caKey)
	return c
}

func issue(t testing.TB, dir, name string, usage x509.ExtKeyUsage, ca *x509.Certificate, caKey *ecdsa.PrivateKey) (certFile, keyFile string) {
	t.Helper()
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	key := newKey(t)
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	writeCert(t, certFile, cert, ca, key, caKey)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, keyFile, "PRIVATE KEY", der)
	return certFile, keyFile
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writeCert(t testing.TB, path string, cert, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, path, "CERTIFICATE", der)
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
