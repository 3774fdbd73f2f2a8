package main

import (
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func init() {
	programs["kwok"] = func() {
		withoutOthersFlags()
		flagset := pflag.NewFlagSet("global", pflag.ContinueOnError)
		flagset.ParseErrorsAllowlist.UnknownFlags = true
		flagset.Usage = func() {}
		ctx, logger := log.InitFlags(signals.SetupSignalContext(), flagset)
		ctx, err := config.InitFlags(ctx, flagset)
		if err == nil {
			command := cmd.NewCommand(ctx)
			command.PersistentFlags().AddFlagSet(flagset)
			err = command.ExecuteContext(ctx)
		}
		if err != nil {
			logger.Error("kwok ends", "err", err)
			os.Exit(1)
		}
	}
}
