// Package config reads feedwarden.yaml: one file in, one typed File out, or
// every fault in it at once, each with the line and column where it stands.
//
// The page that documents the keys is authoritative for their names, meaning
// and defaults; this package holds files to it.
//
//	bytes ─▶ document ─▶ nodes ─▶ sections ─▶ feeds ─▶ File
//	         size, depth,  ${NAME}  keys, types,  each, costs,
//	         YAML syntax            units, names  schedules
//
// A syntax fault ends the reading, since nothing after it can be trusted.
// Every other fault is noted and reading goes on with the default in place of
// the bad value, so one slip does not hide the next.
//
// ${NAME} is replaced in scalar values after the YAML was read, never in keys:
// what the environment holds cannot change the structure. Text that came from
// it is not quoted in any fault, and not printed by any form of the File: see
// Secret and Value.
//
// Anchors, aliases and merge keys are followed, within bounds that keep any
// file, however built, from costing more than a few seconds.
package config
