package formats

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails where a test leaves a goroutine behind: every reader and
// decompressor has to be closed on every way out.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
