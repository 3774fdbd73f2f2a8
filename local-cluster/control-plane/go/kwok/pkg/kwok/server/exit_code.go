package server

import (
	"errors"
	"os/exec"
	"syscall"

	utilexec "k8s.io/utils/exec"
)

func withExitCode(err error) error {
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return err
	}
	code := ended.ExitCode()
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return utilexec.CodeExitError{Err: ended, Code: code}
}
