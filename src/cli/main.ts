import { environment } from '../config/environment.ts';
import { runCommandLine } from './program.ts';

// whoever was there has left
for (const stream of [process.stdin, process.stdout, process.stderr]) stream.on('error', () => {});

const exitCode = await runCommandLine(process.argv.slice(2), {
  env: environment(),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
});
// What was written must be out before the process ends, and nothing that is still open may hold it.
await Promise.all(
  [process.stdout, process.stderr].map(
    (stream) =>
      new Promise<void>((resolve) => {
        stream.write('', () => resolve());
      }),
  ),
);
process.exit(exitCode);
