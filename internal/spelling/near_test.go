package spelling

import "testing"

func TestTheNearestNameIsTheOneMeant(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{"quotta", "quota"}, {"QUOTA", "quota"}, {"qouta", "quota"}, {"sched", "schedule"}, {"tt", "ttl"}, {"x", ""}, {"completely-else", ""}, {"", ""},
	} {
		if n := Near(c.got, []string{"quota", "schedule", "ttl"}); n != c.want {
			t.Errorf("Near(%q) is %q, want %q", c.got, n, c.want)
		}
	}
}
