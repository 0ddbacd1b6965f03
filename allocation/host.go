package allocation

import (
	"net/netip"
	"strings"
)

// normalHost gives a host's one spelling and whether it is private. An IPv6
// address comes with brackets and goes without.
func normalHost(host string) (normal string, private bool, err error) {
	if strings.HasPrefix(host, "[") {
		a, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if err != nil || !a.Is6() || a.Zone() != "" || !strings.HasSuffix(host, "]") {
			return "", false, &LineError{"what stands in brackets is not an IPv6 address", "write [address]:port, without a zone"}
		}
		a = a.Unmap()
		return a.String(), privateAddr(a), nil
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Is6() {
			return "", false, errBareIPv6
		}
		return a.String(), privateAddr(a), nil
	}
	if err := checkName(host); err != nil {
		return "", false, err
	}
	return host, privateName(host), nil
}

// checkName accepts letters, digits, hyphens and underscores in labels. A name
// whose last label is a number is an IPv4 address in some libraries' eyes
// (010.1.2.3, 127.1, 0x7f000001) and none in others'.
func checkName(host string) error {
	wrong := &LineError{"the host is neither a name nor an address", "use a host name (xn-- for other scripts), 1.2.3.4 or [IPv6]"}
	if host == "" || len(host) > 253 {
		return wrong
	}
	var last string
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return wrong
		}
		for i := range len(label) {
			if c := label[i]; !isAlnum(c) && c != '-' && c != '_' {
				return wrong
			}
		}
		last = label
	}
	if isNumber(last) {
		return &LineError{"the host is not a proper IPv4 address", "four numbers from 0 to 255 without leading zeros"}
	}
	return nil
}

func isNumber(label string) bool {
	digits, hex := strings.CutPrefix(label, "0x")
	return strings.Trim(digits, "0123456789") == "" || hex && strings.Trim(digits, "0123456789abcdef") == ""
}

// looksIPv6 tells whether text is an IPv6 address, alone or with a port after it.
func looksIPv6(text string) bool {
	before, _ := cutLast(text, ":")
	for _, s := range []string{text, before} {
		if a, err := netip.ParseAddr(s); err == nil && a.Is6() {
			return true
		}
	}
	return false
}
