package main

import (
	"errors"
	"os"

	helm "helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

func init() {
	programs["helm"] = func() {
		withoutOthersFlags()
		kube.ManagedFieldsManager = "helm"
		command, err := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
		if err == nil {
			err = command.Execute()
		}
		var failed helm.CommandError
		if errors.As(err, &failed) {
			os.Exit(failed.ExitCode)
		}
		if err != nil {
			os.Exit(1)
		}
	}
}
