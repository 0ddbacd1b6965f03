package web

import (
	"net/url"
	"strconv"
)

func escape(name string) string { return url.PathEscape(name) }

func feedLink(name string) string  { return "/feeds/" + escape(name) }
func quotaLink(name string) string { return "/quotas/" + escape(name) }
func poolLink(name string) string  { return "/pools/" + escape(name) }
func jobLink(id string) string     { return "/jobs/" + escape(id) }

// short3 is a number with no more digits than it needs.
func short3(f float64) string { return strconv.FormatFloat(f, 'g', 3, 64) }
