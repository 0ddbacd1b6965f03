package allocation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// ID names the endpoint of a URL that ParseList gave: scheme://user@host:port,
// without the password, so that the same proxy with a new password is the same
// endpoint. It is plain ASCII without blanks or quotes, for arguments and JSON.
//
// A user without a password is most often an API key. It is shown as a digest.
func ID(u *url.URL) string {
	return u.Scheme + "://" + shownUser(u.User) + u.Host
}

func shownUser(user *url.Userinfo) string {
	if user == nil {
		return ""
	}
	name := user.Username()
	if password, _ := user.Password(); password == "" {
		sum := sha256.Sum256([]byte(name))
		return "key~" + hex.EncodeToString(sum[:6]) + "@"
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; isAlnum(c) || strings.IndexByte("-._", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	return b.String() + "@"
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// unknownEndpoint names what was asked for. It may be a URL in place of an ID,
// or a line of a list, so only what can be no part of a password is said.
func unknownEndpoint(id string) error {
	u, err := url.Parse(id)
	if err != nil || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%w: an ID is scheme://user@host:port, as the pool's list shows it", ErrUnknownEndpoint)
	}
	if u.User != nil {
		return fmt.Errorf("%w %q (whatever stands before @ is not shown)", ErrUnknownEndpoint, u.Scheme+"://…@"+u.Host)
	}
	return fmt.Errorf("%w %q", ErrUnknownEndpoint, u.Scheme+"://"+u.Host)
}
