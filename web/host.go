package web

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// hosts are the names by which we may be called. A page of somebody else's
// whose name is bound to our address (DNS rebinding) calls us by its own name.
type hosts map[string]bool

func newHosts(c Config) hosts {
	h := hosts{"localhost": true, "127.0.0.1": true, "::1": true}
	for _, name := range append([]string{c.Listen}, c.Hosts...) {
		if n := hostName(name); n != "" {
			h[n] = true
		}
	}
	return h
}

// ours says whether a request calls us by a name of ours: one of the set, or
// the very address at which its connection arrived. The port is not looked at:
// a tunnel or a container maps it at will.
func (h hosts) ours(r *http.Request) bool {
	name := hostName(r.Host)
	if name == "" {
		return false
	}
	if h[name] {
		return true
	}
	asked, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.AddrPort().Addr().Unmap() == asked
}

// hostName is the one spelling of the host in "host", "host:port", "[v6]:port";
// "" where there is none.
func hostName(hostport string) string {
	host := hostport
	if h, port, err := net.SplitHostPort(hostport); err == nil {
		if strings.Trim(port, "0123456789") != "" {
			return ""
		}
		host = h
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		host, ok = strings.CutSuffix(inner, "]")
		if !ok {
			return ""
		}
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if a.IsUnspecified() {
			return ""
		}
		return a.Unmap().WithZone("").String()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if strings.ContainsAny(host, " \t/\\@:?#[]") {
		return ""
	}
	return host
}
