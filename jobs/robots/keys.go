package robots

// One origin's keys share a hash tag. An origin comes from a parsed URL, so it
// holds no braces.
func fileKey(origin string) string  { return "fw:{robots:" + origin + "}:file" }  // string: a Kept as JSON
func claimKey(origin string) string { return "fw:{robots:" + origin + "}:claim" } // string: somebody asks for the file now
