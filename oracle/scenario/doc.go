// Package scenario describes what the oracle is asked: a topology as a list of named operators, the records and clock steps
// that are fed to it, and the answer. [Generate] makes random scenarios by seed, [Shrink] makes a failing one small.
//
// A scenario is one line of JSON, which oracle/java reads too. All keys and values are text.
package scenario
