// Runs a command in a sandbox by its terminal: node run-by-terminal.mjs SANDBOX COMMAND [ARGUMENT...]
// Prints what the command prints, as it comes, and ends with its exit code. Needs the package ws: npm install ws
import { readFileSync } from 'node:fs';
import WebSocket from 'ws';

const server = process.env.SANDPOOL_SERVER ?? 'http://127.0.0.1:8080';
const key = readFileSync(process.env.SANDPOOL_API_KEY_FILE, 'utf8').trim();
const [sandbox, ...command] = process.argv.slice(2);

// 1. A token, which opens one terminal within 30 seconds.
const answer = await fetch(`${server}/sandboxes/${sandbox}/exec-token`, {
  method: 'POST',
  headers: { 'SERVICE-API-KEY': key },
});
if (!answer.ok) throw new Error(`no token: ${await answer.text()}`);
const { token } = await answer.json();

// 2. The line to type. It replaces the shell by the command, so that the terminal ends with the command's exit code. A byte 036 (in the
// echo of the line it is written out) says where the command's own output begins. All but plain characters are typed as octal numbers,
// since a shell's line editor would take a tab or an é for a key. A line is at most 4,096 bytes.
const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;
const script = `stty -echo -opost; printf '\\036'; exec ${command.map(quoted).join(' ')}`;
const octal = [...Buffer.from(script)]
  .map((byte) => `\\0${byte.toString(8).padStart(3, '0')}`)
  .join('');
const line = ` exec /bin/sh -c "$(printf %b '${octal}')"\r`;

// 3. The terminal. Binary frames are bytes of the terminal; text frames are JSON, and the last one has the exit code.
const address = `${server.replace(/^http/, 'ws')}/ws/clusters/local/sandboxes/${sandbox}/terminal`;
const terminal = new WebSocket(address, ['sandpool.terminal.v1', `sandpool.token.${token}`]);
let begun = false;
let exitCode;
terminal.on('open', () => terminal.send(Buffer.from(line)));
terminal.on('message', (bytes, isBinary) => {
  const data = Buffer.from(bytes);
  if (!isBinary) {
    const message = JSON.parse(data.toString('utf8'));
    if (message.type === 'exit') exitCode = message.exitCode;
    return;
  }
  const at = begun ? -1 : data.indexOf(0o36);
  if (at >= 0) begun = true;
  if (begun) process.stdout.write(data.subarray(at + 1));
});
terminal.on('error', (error) => process.stderr.write(`${error.message}\n`));
terminal.on('close', (code) => {
  if (exitCode === undefined) process.stderr.write(`the terminal ended with close code ${code}\n`);
  process.exitCode = exitCode ?? 125;
});
