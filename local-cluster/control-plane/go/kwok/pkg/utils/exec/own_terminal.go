package exec

import (
	"io"
	"os"
	"os/exec"
	"syscall"
)

func ownTerminal(cmd *exec.Cmd, input io.Reader) {
	if _, isTerminal := input.(*os.File); !isTerminal {
		return
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	cmd.SysProcAttr.Setctty = true
}
