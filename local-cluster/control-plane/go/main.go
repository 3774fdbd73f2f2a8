// The programs of a control plane in one file: it is the program that its name says. A package that several use is compiled
// once, and one program is linked.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

var programs = map[string]func(){}

func main() {
	name := filepath.Base(os.Args[0])
	run, known := programs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "there is no program %s here\n", name)
		os.Exit(2)
	}
	run()
}

// withoutOthersFlags drops the flags that packages of other programs declare, --version among them. cobra offers those to each.
func withoutOthersFlags() {
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ContinueOnError)
}
