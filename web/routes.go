package web

import (
	"net/http"

	"feedwarden/jobs/probe"
)

// route is one method on one path.
type route struct {
	method string
	path   string
	role   Role   // the least that is asked for; "" lets everybody in
	gives  string // the media type of the answer, for Accept; "" is not checked
	serve  http.HandlerFunc
}

const (
	get  = http.MethodGet
	post = http.MethodPost
	put  = http.MethodPut
	del  = http.MethodDelete
)

// routes are all of them. HEAD goes where GET goes.
func routes(s *Server, metrics http.Handler) []route {
	return []route{
		{get, "/v1/jobs", Read, jsonType, s.listJobs},
		{post, "/v1/jobs", Write, "", s.postJobs},
		{get, "/v1/jobs/{id}", Read, jsonType, s.getJob},
		{del, "/v1/jobs/{id}", Write, jsonType, s.cancelJob},

		{get, "/v1/feeds", Read, jsonType, s.listFeeds},
		{get, "/v1/feeds/{name}", Read, "", s.readFeed},
		{put, "/v1/feeds/{name}", Write, jsonType, s.putFeed},
		{get, "/v1/feeds/{name}/versions", Read, jsonType, s.listVersions},
		{get, "/v1/feeds/{name}/diff", Read, jsonType, s.diffFeed},
		{get, "/v1/feeds/{name}/aside", Read, jsonType, s.listAside},
		{post, "/v1/warm", Write, jsonType, s.warm},

		{get, "/v1/quotas", Read, jsonType, s.listQuotas},
		{get, "/v1/quotas/{name}", Read, jsonType, s.getQuota},
		{post, "/v1/quotas/{name}/charge", Write, jsonType, s.charge},
		{post, "/v1/quotas/{name}/refund", Write, jsonType, s.refund},

		{get, "/v1/pools", Read, jsonType, s.listPools},
		{get, "/v1/pools/{name}", Read, jsonType, s.getPool},

		{get, "/v1/schedules", Read, jsonType, s.listSchedules},
		{post, "/v1/schedules/{name}/pause", Write, jsonType, s.pauseSchedule},
		{post, "/v1/schedules/{name}/resume", Write, jsonType, s.resumeSchedule},
		{post, "/v1/schedules/{name}/trigger", Write, jsonType, s.triggerSchedule},

		{get, "/v1/openapi.json", Read, jsonType, s.openapiJSON},
		{get, "/v1/openapi.yaml", Read, "", s.openapiYAML},

		{get, "/{$}", Read, pageType, s.overview},
		{get, "/feeds", Read, pageType, s.feedsPage},
		{get, "/feeds/{name}", Read, pageType, s.feedPage},
		{get, "/quotas", Read, pageType, s.quotasPage},
		{get, "/quotas/{name}", Read, pageType, s.quotaPage},
		{get, "/pools", Read, pageType, s.poolsPage},
		{get, "/pools/{name}", Read, pageType, s.poolPage},
		{get, "/schedules", Read, pageType, s.schedulesPage},
		{get, "/jobs", Read, pageType, s.jobsPage},
		{get, "/jobs/{id}", Read, pageType, s.jobPage},
		{get, "/audit", Read, pageType, s.auditPage},
		{post, "/act/{kind}/{verb}", Write, "", s.act},
		{get, "/events", Read, eventType, s.streamEvents},
		{get, "/assets/{file}", Read, "", s.asset},
		{get, "/login", "", pageType, s.showLogin},
		{post, "/login", "", "", s.login},
		{post, "/logout", Read, "", s.logout},

		{get, "/monitor", Read, "", redirect("/monitor/")},
		{get, "/monitor/", Read, "", s.monitor.ServeHTTP},
		{post, "/monitor/", Admin, "", s.monitor.ServeHTTP},
		{del, "/monitor/", Admin, "", s.monitor.ServeHTTP},

		{get, "/metrics", Read, "", metrics.ServeHTTP},
		{get, "/healthz", "", jsonType, s.healthz},
		{get, "/readyz", "", jsonType, s.readyz},
		{get, probe.Path, "", "", s.judge},
	}
}

// patient are the routes whose answer may be long in coming: a reader waits for a
// feed's first version, a page listens.
var patient = map[string]bool{"/v1/feeds/{name}": true, "/events": true}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to, http.StatusPermanentRedirect)
	}
}
