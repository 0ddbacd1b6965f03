package sink

import "time"

// A feed's ledger has the hash tag of its other keys. Names of feeds hold no brace.
func ledgerKey(feed string) string { return "fw:{feed:" + feed + "}:sinks" }

// ledgerLife is how long a ledger outlives the last that was written to it.
const ledgerLife = 90 * 24 * time.Hour
