package object

import "testing"

func TestTwiceFindsANameThatStandsTwice(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"feed":"a","feed":"b"}`: "feed", `{"feed":"a","Feed":"b"}`: "Feed", `{"feed":"a","id":"b"}`: "", `{"a":{"b":1,"b":2},"b":3}`: "",
		`{"a":[{"a":1}],"\u0061":2}`: "a", `{}`: "", `null`: "", `[]`: "", ``: "", `{"a":1,"a":`: "a", `{"a":`: "",
	} {
		if got := Twice([]byte(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
