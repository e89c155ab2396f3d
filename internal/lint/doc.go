// Package lint holds tests about the code itself: which folder may import what, and how long things may be.
package lint
