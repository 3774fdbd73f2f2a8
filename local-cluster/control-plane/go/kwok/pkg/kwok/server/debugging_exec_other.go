package server

import (
	"context"
	"io"
	"time"

	"github.com/creack/pty"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	utilsexec "sigs.k8s.io/kwok/pkg/utils/exec"
)

func (s *Server) execInContainerWithTTY(ctx context.Context, cmd []string, in io.Reader, out io.WriteCloser, resize <-chan remotecommand.TerminalSize) error {
	master, terminal, err := pty.Open()
	if err != nil {
		return err
	}
	defer func() { _ = master.Close() }()
	if resize != nil {
		go func() {
			for size := range resize {
				_ = pty.Setsize(master, &pty.Winsize{Rows: size.Height, Cols: size.Width})
			}
		}()
	}
	if in != nil {
		go func() { _, _ = io.Copy(master, in) }()
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(out, master)
	}()
	streams := utilsexec.IOStreams{In: terminal, Out: terminal, ErrOut: terminal}
	err = utilsexec.Exec(utilsexec.WithIOStreams(ctx, streams), cmd[0], cmd[1:]...)
	_ = terminal.Close()
	select {
	case <-drained:
	case <-time.After(time.Second): // what the command left in the background has it still open
	}
	return err
}
