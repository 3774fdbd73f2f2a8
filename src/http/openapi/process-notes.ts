/** Says what the document tells of each operation on processes, besides its summary. */
export const PROCESS_NOTES = {
  startProcess: `
Starts a process as the sandbox's user, hardened like the main process, and answers once its
program runs. It belongs to nobody's connection: it goes on until it ends, is deleted, or its
sandbox ends. What it prints is kept, the last 1 MiB, and can be read meanwhile and afterwards. With
\`Accept: text/event-stream\` the answer is its output at once, as
\`GET …/output\` has it, behind an event \`start\` with the process; a client that leaves ends
nothing. Where it runs, but can't be read now, an event \`error\` follows, such as one with
\`TOO_MANY_STREAMS\`.

At most 64 of a sandbox live at a time; one that ended is known for 10 minutes, or until 64 others
have ended. Under one \`Idempotency-Key\` the same process is meant, however often it is asked for:
while it is known, none is started again. A process that only runs is no activity; start, input,
signals and readers that are connected are. On one machine processes outlive a stop, a kill, a
restart and an upgrade of the daemon and its helpers, and readers go on from their position. Where
what holds one was killed, the sandbox has the event \`ProgramsEnded\`, with the cause.`,
  listProcesses: `
Those that live, and those that ended and are known still; the latest start first.`,
  getProcess: 'As `GET …/processes` shows it.',
  followProcess: `
Sends what the process printed, from its beginning or from an event on, and then what it prints:
events \`stdout\` and \`stderr\` with \`data\`, which is text where the bytes of this piece are
UTF-8 without a NUL, and else base64, as \`encoding\` says; with \`encoding=base64\` it always is,
which is several times as fast. A piece has 64 KiB at most, and may be cut within a
character: then it comes as base64. Their ids are positions: a client that comes again with
\`Last-Event-ID\` or \`from\` goes on where it was, within the last 1 MiB. The event \`dropped\`
says that something in its place is no longer kept. \`end\` has the process as it ended, and is the
last; or \`error\`, where it was deleted or is lost. Without \`pace\` a reader that is slow never
holds the process back. Every 15 s without output comes a comment. A client that takes nothing for
30 s is cut.
At most 64 read processes of one sandbox, 512 are of one tenant.

As a WebSocket, with the key in its header, the same goes both ways (\`from\` and \`pace\` as
above). A binary frame of the server begins with a byte for its kind, 1 for \`stdout\`, 2 for
\`stderr\`, 0 for JSON of the service; a byte that says how long the position is that follows, as
ASCII, and is empty where the piece goes on in the next frame; then come the bytes. The JSON has
\`type\` \`dropped\` or \`error\`. Binary frames of the client are input, in order, and wait until
the process reads it; text frames are \`{"type":"resize","cols":80,"rows":24}\`,
\`{"type":"signal","name":"INT"}\` and \`{"type":"eof"}\`, the end of the input. Last comes a text
frame \`{"type":"exit","exitCode":0}\`, and the close 1000; 1011 where the process was deleted or
is lost, 4001 once the key is revoked, 4004 where the sandbox ended. Client frames have 64 KiB at
most, and the rates of terminals.`,
  writeToProcess: `
Hands over input, whole or not at all, in the order of the answers. Answers once the process has it
or will read it next; where it reads nothing for 20 s, 409, and nothing of it was taken.`,
  signalProcess: `
To the process group, or to what is in the foreground of its terminal.`,
  resizeProcess: `
As a terminal's window does. A process without a terminal is refused, 400; one that has ended,
409.`,
  deleteProcess: `
Kills the process group of one that runs, and forgets it with what it printed. Answers once it has
ended. A process that left its group lives on.`,
};
