package allocation

import (
	"encoding/json"
	"net/netip"
	"time"
)

// verdict is the JSON of field v:ID, version 1.
type verdict struct {
	V       int        `json:"v"`
	OK      bool       `json:"ok"`
	Kind    Outcome    `json:"kind,omitempty"`
	HTTPS   bool       `json:"https,omitempty"`
	Latency int64      `json:"latency_us,omitempty"`
	Alters  bool       `json:"alters,omitempty"`
	Reveals bool       `json:"reveals,omitempty"`
	Exit    netip.Addr `json:"exit,omitzero"`
	Detail  string     `json:"detail,omitempty"`
	At      int64      `json:"at_us"`
}

const maxDetail = 300

func storedVerdict(v Verdict) verdict {
	if len(v.Detail) > maxDetail {
		v.Detail = v.Detail[:maxDetail]
	}
	return verdict{1, v.OK, v.Kind, v.HTTPS, v.Latency.Microseconds(), v.Alters, v.Reveals, v.Exit, v.Detail, v.At.UnixMicro()}
}

func readVerdict(text string) (*Verdict, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // none is no fault
	}
	var v verdict
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return nil, err
	}
	return &Verdict{
		OK: v.OK, Kind: v.Kind, HTTPS: v.HTTPS, Latency: time.Duration(v.Latency) * time.Microsecond,
		Alters: v.Alters, Reveals: v.Reveals, Exit: v.Exit, Detail: v.Detail, At: time.UnixMicro(v.At).UTC(),
	}, nil
}
