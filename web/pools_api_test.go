package web

import (
	"strings"
	"testing"
	"time"
)

func TestPools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	eps, err := w.pools.List(t.Context(), "public")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.pools.Quarantine(t.Context(), "public", eps[0].ID, time.Minute); err != nil {
		t.Fatal(err)
	}
	list := decode[map[string][]Pool](w, w.get("/v1/pools"))["pools"]
	if len(list) != 1 || list[0].Total != 3 || list[0].Eligible != 2 || list[0].Quarantined != 1 || list[0].Policy != "least-used" || list[0].NextEligibleAt == nil {
		t.Errorf("pools %+v", list)
	}
	rec := w.get("/v1/pools/public")
	one := decode[poolDetail](w, rec)
	if one.Name != "public" || len(one.Endpoints) != 3 || one.Endpoints[0].State != "quarantined" || one.Endpoints[0].Until == nil {
		t.Errorf("pool %+v", one)
	}
	if strings.Contains(rec.Body.String(), proxyPassword) {
		t.Error("a proxy's password came out")
	}
	w.wantProblem(w.get("/v1/pools/none"), 404, "unknown-pool")
}
