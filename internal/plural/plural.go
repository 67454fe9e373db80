// Package plural writes counts with their noun, as messages to people have them.
package plural

import (
	"fmt"
	"strings"
)

// Int is any type that counts.
type Int interface{ ~int | ~int64 }

// Of is n with its noun: "1 request", "2 requests", "0 retries" of "retry".
func Of[N Int](n N, noun string) string {
	return fmt.Sprintf("%d %s", n, Noun(n, noun))
}

// Noun is the noun alone, in the number that n asks for.
func Noun[N Int](n N, noun string) string {
	switch {
	case n == 1:
		return noun
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ay"):
		return strings.TrimSuffix(noun, "y") + "ies"
	case strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "ch"):
		return noun + "es"
	}
	return noun + "s"
}

// Pick is one where n is 1, else many: Pick(n, "was", "were").
func Pick[N Int](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
