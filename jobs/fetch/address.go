package fetch

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// guardian knows the special-purpose prefixes of the IANA registries.
var guardian = ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork())

// neverAllowed are the prefixes that AllowPrivate does not open: nothing there
// serves a feed, and clouds hand out a machine's credentials at some, one of
// them an address that looks public.
var neverAllowed = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/128"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("ff00::/8"),
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle
	netip.MustParsePrefix("fd00:ec2::254/128"),  // Amazon over IPv6
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google over IPv6
}

var (
	nat64     = ssrf.IPv6NAT64Prefix
	ownNAT64  = netip.MustParsePrefix("64:ff9b:1::/48") // for local use, RFC 8215
	sixToFour = netip.MustParsePrefix("2002::/16")
	teredo    = netip.MustParsePrefix("2001::/32")
	// Of both the last four bytes are the IPv4 address.
	compatible = netip.MustParsePrefix("::/96")
	translated = netip.MustParsePrefix("::ffff:0:0:0/96")
)

// checkAddress says whether a target may have this address; nil is yes.
func checkAddress(ip netip.Addr, allowPrivate bool) error {
	if ip.Zone() != "" {
		return fmt.Errorf("%s is an address of one link only", ip.WithZone(""))
	}
	if !allowPrivate {
		if err := guardian.SafeAddr(ip); err != nil {
			return fmt.Errorf("%s is not a public address (fetch.allow_private would allow private ones)", ip)
		}
	}
	for _, a := range append(embedded(ip), ip) {
		for _, p := range neverAllowed {
			if p.Contains(a) {
				return fmt.Errorf("%s lies in %s, which is never a target", ip, p)
			}
		}
	}
	return nil
}

// embedded gives the IPv4 addresses that an IPv6 address stands for.
func embedded(ip netip.Addr) []netip.Addr {
	switch {
	case ip.Is4In6():
		return []netip.Addr{ip.Unmap()}
	case teredo.Contains(ip): // RFC 4380, 4: the server, and the client with its bits turned round
		b := ip.As16()
		client := [4]byte{^b[12], ^b[13], ^b[14], ^b[15]}
		return []netip.Addr{netip.AddrFrom4([4]byte(b[4:8])), netip.AddrFrom4(client)}
	case ownNAT64.Contains(ip): // RFC 6052, 2.2: by the length of the network's prefix, around byte 8
		b := ip.As16()
		var out []netip.Addr
		for _, v4 := range [][4]byte{[4]byte(b[12:16]), {b[6], b[7], b[9], b[10]}, {b[7], b[9], b[10], b[11]}, {b[9], b[10], b[11], b[12]}} {
			if v4[0] != 0 {
				out = append(out, netip.AddrFrom4(v4))
			}
		}
		return out
	case nat64.Contains(ip), translated.Contains(ip), compatible.Contains(ip) && !ip.IsLoopback() && !ip.IsUnspecified():
		b := ip.As16()
		return []netip.Addr{netip.AddrFrom4([4]byte(b[12:16]))}
	case sixToFour.Contains(ip):
		b := ip.As16()
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	}
	return nil
}

// guardDial is a net.Dialer's Control: it sees the address that is really
// dialled, so a name that changes between two look-ups gains nothing.
func guardDial(allowPrivate bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return &policyError{fmt.Sprintf("the address to dial, %q, is not host and port", address)}
		}
		if err := checkAddress(ap.Addr(), allowPrivate); err != nil {
			return &policyError{"the host resolves to an address that is refused: " + err.Error()}
		}
		return nil
	}
}

// errPrivateEndpoint is the endpoint's fault, not the request's: no connection
// to it comes about, and another endpoint may do.
var errPrivateEndpoint = errors.New("the proxy's host resolves to a private, loopback or reserved address (the pool's allow_private would allow it)")

// guardEndpoint is the Control of dials to endpoints that must be public.
func guardEndpoint(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || guardian.SafeAddr(ap.Addr()) != nil {
		return errPrivateEndpoint
	}
	return nil
}
