package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"trace-replay": main})
}

func TestScripts(t *testing.T) {
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Dir: "testdata", RequireExplicitExec: true, Setup: func(env *testscript.Env) error {
		env.Setenv("FIXTURES", fixtures)
		return nil
	}})
}

// replayHere runs the command in this process.
func replayHere(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs syncBuffer
	code = run(context.Background(), args, os.Stdin, &out, &errs)
	return code, out.String(), errs.String()
}
