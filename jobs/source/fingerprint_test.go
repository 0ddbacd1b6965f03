package source

import (
	"reflect"
	"testing"
	"time"
)

// Whatever is asked otherwise, or read otherwise, is another answer: a field
// that Config gains is to be told of here.
func TestFingerprintChangesWithWhatIsAskedAndHowItIsRead(t *testing.T) {
	t.Parallel()
	full := map[string]any{
		"Kind": "json", "URL": "https://example.org/a", "BaseURL": "https://example.org", "Method": "videos.list",
		"Params": map[string]string{"a": "1"}, "Headers": map[string]string{"Accept-Language": "bn"}, "Pages": 3,
		"Items": ".[]", "Map": map[string]string{"id": ".id"}, "Paging": &Paging{Page: &PageNumbers{From: 1, Max: 2}},
		"Next": &NextPage{CSS: "a", Max: 2}, "Ban": &BanSigns{Text: "no"}, "MaxItems": 7,
	}
	same := map[string]any{"Key": "another", "Secrets": []string{"another"}, "Now": time.Now}
	zero := Config{}.Fingerprint()
	seen := map[string]string{zero: "nothing"}
	kind := reflect.TypeFor[Config]()
	for i := range kind.NumField() {
		name := kind.Field(i).Name
		var c Config
		v, differs := full[name]
		if !differs {
			v = same[name]
		}
		if v == nil {
			t.Errorf("%s: does it change what is asked or read?", name)
			continue
		}
		reflect.ValueOf(&c).Elem().Field(i).Set(reflect.ValueOf(v))
		got := c.Fingerprint()
		if !differs {
			if got != zero {
				t.Errorf("%s changes the fingerprint", name)
			}
			continue
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%s has the fingerprint of %s", name, other)
		}
		seen[got] = name
	}
	deep := Config{Paging: &Paging{Page: &PageNumbers{From: 1, Max: 3}}}
	if _, twice := seen[deep.Fingerprint()]; twice {
		t.Error("another number of pages is not told apart")
	}
}
