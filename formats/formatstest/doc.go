// Package formatstest is the suite that every foreign format has to pass: its
// own test calls Run with a sample and a generator of odd rows.
package formatstest
