package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// warnPrivate tells of feeds whose address is as good as certain to be refused
// when it is fetched; a feed that leads elsewhere by its name shows then.
func (d *decoder) warnPrivate(feeds []Feed) {
	told := map[Pos]bool{} // feeds of one entry share their place
	for _, f := range feeds {
		for _, target := range []string{f.URL.Reveal(), f.BaseURL.Reveal()} {
			if !told[f.Pos] && private(target) {
				told[f.Pos] = true
				d.warn(f.Pos, fmt.Sprintf("feeds.%s asks a private address or a name without a dot, which is refused", f.Name), "if it is meant, set fetch.allow_private: true")
			}
		}
	}
}

func private(target string) bool {
	u, err := url.Parse(target)
	if err != nil || u.Hostname() == "" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return !strings.Contains(strings.TrimSuffix(u.Hostname(), "."), ".")
	}
	ip = ip.Unmap()
	return ip.IsPrivate() || ip.IsLoopback() || ip.IsUnspecified()
}
