// Package cli holds what the commands of the toolkit share: the exit status,
// how errors are told, --help and --version.
package cli
