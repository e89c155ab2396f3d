// Package measure runs contenders as processes, watches them from outside, the same way for all of them, and returns figures.
// A run whose output is not what its input says has an error instead of a figure.
package measure
