package cli

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Version is what --version prints: the command's name, the module's version or
// the revision it was built from, and what it was built with.
func Version(name string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return name + " " + version(info) + " (" + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + ")"
}

// revisionDigits are enough of a commit to find it.
const revisionDigits = 12

func version(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return strings.TrimPrefix(v, "v")
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision := settings["vcs.revision"]
	if revision == "" {
		return "devel"
	}
	text := "devel-" + revision[:min(len(revision), revisionDigits)]
	if settings["vcs.modified"] == "true" {
		text += "+dirty"
	}
	return text
}
