import { readWhole } from '../answer-stream.ts';
import { withSandbox, type ClaimedSandbox } from '../claimed-sandbox.ts';
import { inPairs, type Figure } from '../figure.ts';
import type { Measure } from '../measure.ts';

const MIB = 64;
const BYTES = MIB << 20;
const CONTENTS = [
  ['text', `yes 'a line of text, as a build or a test prints it' | head -c ${BYTES}`],
  ['random bytes', `head -c ${BYTES} /dev/urandom`],
  ['NULs', `head -c ${BYTES} /dev/zero`],
] as const;

export const throughput: Figure = {
  name: 'processes:stream',
  about: `${MIB} MiB of a file as the output of \`cat\`, against the pipe of the launcher alone`,
  run: async (bench) =>
    await withSandbox(bench, async (sandbox) => {
      const rows: Measure[] = [];
      for (const [what, command] of CONTENTS) {
        await sandbox.run(`${command} > /tmp/content`);
        const ours = (): Promise<number> => streamed(sandbox);
        const theirs = async (): Promise<number> =>
          MIB / ((await sandbox.flows(['/bin/cat', '/tmp/content'])) / 1_000);
        await ours();
        await theirs();
        rows.push({
          name: `one stream of ${what} / cat by the launcher alone`,
          unit: 'MB/s',
          better: 'more',
          reach: 0.5,
          beyond: 0.8,
          ...(await inPairs(bench, { ours, theirs })),
        });
      }
      return rows;
    }),
};

/** The process waits for its reader, so that nothing is dropped. */
const streamed = async (sandbox: ClaimedSandbox): Promise<number> => {
  const ask = sandbox.ask({
    method: 'POST',
    path: 'processes?pace=true&encoding=base64',
    headers: ['Accept: text/event-stream'],
    body: JSON.stringify({ command: ['/bin/cat', '/tmp/content'] }),
  });
  const { tookMs, bytes, end } = await readWhole(ask);
  if (bytes < BYTES || !end.includes('"exitCode":0,'))
    throw new Error(`only ${bytes} bytes came: ${end}`);
  return MIB / (tookMs / 1_000);
};
