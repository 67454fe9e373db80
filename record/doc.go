// Package record holds Retrace's record types and the container they are
// stored in: a Request is one request to be made, a Result one as it went.
package record
