export const PROCESS_NOTES = {
  startProcess: `
Starts a process as the sandbox's user, hardened like the main process, and answers once its
program runs. The process does not depend on a connection: it continues until it ends, is deleted,
or its sandbox ends. The last 1 MiB of its output is stored, and can be read while it runs and
afterwards. With \`Accept: text/event-stream\` the answer is its output, as in \`GET …/output\`,
after an event \`start\` with the process; a client that disconnects ends nothing. If the process
runs but its output cannot be read now, an event \`error\` follows, such as \`TOO_MANY_STREAMS\`.

At most 64 processes of a sandbox live at a time. A process that ended is known for 10 minutes, or
until 64 others have ended. Repeated requests under one \`Idempotency-Key\` refer to the same
process: while it is known, no other is started. A process that only runs is not activity; its
start, input, signals and connected readers are. On one machine processes survive a stop, a kill,
a restart and an upgrade of the daemon and its helpers, and readers continue from their position.
If the helper that holds a process was killed, the sandbox has the event \`ProgramsEnded\`, with
the cause.`,
  listProcesses: `
Live processes, and ended processes that are still known; latest start first.`,
  getProcess: 'As `GET …/processes` shows it.',
  followProcess: `
Sends the output of the process from its beginning, or after an event, and then new output: events
\`stdout\` and \`stderr\` with \`data\`. \`data\` is text if the bytes of this piece are UTF-8
without a NUL, otherwise base64, as \`encoding\` says. With \`encoding=base64\` it is always
base64, which is several times as fast. A piece has at most 64 KiB, and may end within a
character; then it is base64. Event ids are positions: a client that reconnects with
\`Last-Event-ID\` or \`from\` continues where it was, within the last 1 MiB. The event \`dropped\`
says that output at this place is no longer stored. The last event is \`end\`, with the ended
process, or \`error\` if the process was deleted or lost. Without \`pace\` a slow reader never
blocks the process. Every 15 s without output the stream sends a comment. A client that reads
nothing for 30 s is disconnected. At most 64 clients read processes of one sandbox, and 512 those
of one tenant.

As a WebSocket, with the key in its header, the same connection carries both directions (\`from\`
and \`pace\` as above). A binary frame of the server begins with a byte for its kind: 1 for
\`stdout\`, 2 for \`stderr\`, 0 for JSON of the service. The next byte is the length of the
position that follows in ASCII; the position is empty if the piece continues in the next frame.
Then come the bytes. The JSON has the \`type\` \`dropped\` or \`error\`. Binary frames of the
client are input, in order, and wait until the process reads it. Text frames are
\`{"type":"resize","cols":80,"rows":24}\`, \`{"type":"signal","name":"INT"}\` and
\`{"type":"eof"}\`, the end of the input. At the end comes a text frame
\`{"type":"exit","exitCode":0}\` and the close code 1000; 1011 if the process was deleted or lost,
4001 if the key was revoked, 4004 if the sandbox ended. Client frames have at most 64 KiB, and the
rate limits of terminals.`,
  writeToProcess: `
Sends input, completely or not at all, in the order of the answers. Answers once the process has
the input or will read it next. If it reads nothing for 20 s, the answer is 409, and none of the
input was taken.`,
  signalProcess: `
Sends the signal to the process group, or to the foreground process of its terminal.`,
  resizeProcess: `
Resizes the terminal, like a terminal's window. A process without a terminal is refused with 400,
an ended process with 409.`,
  deleteProcess: `
Kills the process group of a running process, and deletes the process with its output. Answers
once it has ended. A process that left its group continues.`,
};
