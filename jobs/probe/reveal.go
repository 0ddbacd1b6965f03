package probe

import (
	"net/netip"
	"slices"
	"strings"
)

// namesCaller are headers whose meaning is the address of whoever stands before
// a proxy.
var namesCaller = []string{
	"Cf-Connecting-Ip", "Client-Ip", "Fastly-Client-Ip", "Forwarded", "Forwarded-For", "Remote-Addr", "True-Client-Ip", "X-Client-Ip",
	"X-Cluster-Client-Ip", "X-Forwarded", "X-Forwarded-For", "X-Original-Forwarded-For", "X-Originating-Ip", "X-Proxyuser-Ip",
	"X-Real-Ip", "X-Remote-Addr", "X-Remote-Ip",
}

// exit is the address that the judge saw. A judge behind a proxy of its own sees
// that one, which then tells the address before it.
func exit(a, direct Answer) netip.Addr {
	if len(direct.Headers["X-Forwarded-For"]) > 0 {
		if before := addresses(a.Headers["X-Forwarded-For"]); len(before) > 0 {
			return before[len(before)-1]
		}
	}
	addr, err := netip.ParseAddr(a.Peer)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}

// revealed says what an answer through an endpoint shows of the caller, who
// looks to the judge as in direct; "" is nothing. That a Via names the proxy
// reveals the proxy, not the caller.
func revealed(a, direct Answer) string {
	ours := []netip.Addr{exit(direct, direct)}
	for _, values := range direct.Headers {
		ours = append(ours, addresses(values)...)
	}
	theirs := exit(a, direct)
	var names []string
	for name := range a.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := a.Headers[name]
		if name == "Proxy-Authorization" {
			return "it passes its login on to the target"
		}
		if slices.Equal(values, direct.Headers[name]) {
			continue
		}
		_, always := direct.Headers[name]
		for _, addr := range addresses(values) {
			if slices.Contains(ours, addr) || addr != theirs && !always && slices.Contains(namesCaller, name) {
				return "its header " + name + " tells the target who asks"
			}
		}
	}
	return ""
}

// addresses are the IP addresses within header values, in order.
func addresses(values []string) []netip.Addr {
	var out []netip.Addr
	for _, v := range values {
		for _, word := range strings.FieldsFunc(v, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF.:", r) }) {
			if addr, ok := address(word); ok {
				out = append(out, addr)
			}
		}
	}
	return out
}

// address reads 1.2.3.4, 1.2.3.4:80, 2001:db8::1.
func address(word string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(word); err == nil {
		return a.Unmap(), true
	}
	if ap, err := netip.ParseAddrPort(word); err == nil {
		return ap.Addr().Unmap(), true
	}
	return netip.Addr{}, false
}
