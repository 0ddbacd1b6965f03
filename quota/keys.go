package quota

// keys are a quota's keys, in the order in which every script takes them. They
// share one hash tag, so they live in one slot of a Cluster.
func keys(prefix, name string) []string {
	p := prefix + "{quota:" + name + "}:"
	return []string{
		p + "state",
		p + "meta",
		p + "log:0",
		p + "log:1",
		p + "wait",
		p + "due",
		p + "line:scheduled",
		p + "line:interactive",
		p + "sums:scheduled",
		p + "sums:interactive",
		p + "series",
		p + "labels",
	}
}

// hotKeys are those of them that hot.lua takes.
func hotKeys(all []string) []string {
	return []string{all[0], all[1], all[2], all[3], all[10], all[11]}
}

// runningKeys are a running limit's keys, in one slot too.
func runningKeys(prefix, name string) []string {
	p := prefix + "{running:" + name + "}:"
	return []string{p + "meta", p + "held", p + "line", p + "due", p + "past"}
}
