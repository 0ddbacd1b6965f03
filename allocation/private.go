package allocation

import (
	"net/netip"
	"strings"
)

// notPublic are the prefixes of the IANA special-purpose registries in which
// no public proxy can live. The documentation prefixes (192.0.2.0/24,
// 198.51.100.0/24, 203.0.113.0/24, 2001:db8::/32, 3fff::/20) are left out:
// they lead nowhere, and every example is written with them.
var notPublic = prefixes(
	"0.0.0.0/8",       // this network, RFC 791
	"10.0.0.0/8",      // private, RFC 1918
	"100.64.0.0/10",   // shared address space, RFC 6598
	"127.0.0.0/8",     // loopback, RFC 1122
	"169.254.0.0/16",  // link local, cloud metadata, RFC 3927
	"172.16.0.0/12",   // private, RFC 1918
	"192.0.0.0/24",    // IETF protocol assignments, RFC 6890
	"192.31.196.0/24", // AS112, RFC 7535
	"192.52.193.0/24", // AMT, RFC 7450
	"192.88.99.0/24",  // 6to4 relay anycast, RFC 7526
	"192.168.0.0/16",  // private, RFC 1918
	"192.175.48.0/24", // AS112, RFC 7534
	"198.18.0.0/15",   // benchmarking, RFC 2544
	"224.0.0.0/4",     // multicast, RFC 5771
	"240.0.0.0/4",     // reserved and broadcast, RFC 1112

	"2001::/23",         // IETF protocol assignments (Teredo among them), RFC 2928
	"2002::/16",         // 6to4: an IPv4 address inside, RFC 3056
	"2620:4f:8000::/48", // AS112, RFC 7534
)

// globalUnicast is all of IPv6 that is routed: loopback, unique local, link
// local, NAT64 (64:ff9b::/96) and multicast lie outside.
var globalUnicast = netip.MustParsePrefix("2000::/3")

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// privateAddr tells whether no public endpoint can have this address.
func privateAddr(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if a.Is6() && !globalUnicast.Contains(a) {
		return true
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// privateName tells whether a host name means this machine, RFC 6761.
func privateName(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		host == "localhost.localdomain" || host == "ip6-localhost" || host == "ip6-loopback"
}
