import { environment } from '../daemon/config/environment.ts';
import { runCommandLine } from './program.ts';

let failure: Error | undefined;
for (const stream of [process.stdin, process.stdout, process.stderr])
  stream.on('error', (error: Error & { readonly code?: string }) => {
    // EPIPE: the reader has left
    if (stream === process.stdout && error.code !== 'EPIPE') failure ??= error;
  });

const exitCode = await runCommandLine(process.argv.slice(2), {
  env: environment(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
});
// Flush the output, and do not wait for open handles.
await Promise.all(
  [process.stdout, process.stderr].map(
    (stream) =>
      new Promise<void>((resolve) => {
        stream.write('', () => resolve());
      }),
  ),
);
if (failure) process.stderr.write(`sandpool: the output can’t be written: ${failure.message}\n`);
process.exit(failure && exitCode === 0 ? 1 : exitCode);
