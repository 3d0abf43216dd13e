package premise

import (
	"os"
	"slices"
	"strings"
)

// kept are the variables of the go command that say where things are; all others
// are ours.
var kept = []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOROOT", "GOTMPDIR"}

// goEnvironment is what the go command runs with: no network, no cgo, no
// workspace, nothing that a person has configured.
func goEnvironment() []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "INTERLOCK_") || strings.HasPrefix(name, "GO") && !slices.Contains(kept, name) {
			continue
		}
		env = append(env, v)
	}
	return append(env, "GOENV=off", "GOFLAGS=-mod=mod -trimpath -buildvcs=false", "GOPROXY=off", "GOSUMDB=off",
		"GOWORK=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0")
}
