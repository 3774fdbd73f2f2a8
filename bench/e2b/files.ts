import { inPairs, type Bench, type Figure } from '../figure.ts';
import type { Measure } from '../measure.ts';
import { byRest, withServedSandbox } from './served-sandbox.ts';

const MIB = 64;
const BYTES = MIB << 20;

export const files: Figure = {
  name: 'e2b:files',
  about: `${MIB} MiB by \`files.write\` and \`files.read\` of the SDK, against the same by REST`,
  run: async (bench) =>
    await withServedSandbox(bench, async ({ sdk, rest }) => {
      // A Blob on both sides: the SDK makes one of whatever it is given.
      const content = new Uint8Array(BYTES).fill(0x61).buffer;
      const timed = async (one: () => Promise<unknown>): Promise<number> => {
        await rest.run('rm -f /tmp/ours /tmp/theirs');
        const began = performance.now();
        await one();
        return MIB / ((performance.now() - began) / 1_000);
      };
      const put = (): Promise<number> =>
        timed(() =>
          byRest(rest, 'files?path=/tmp/theirs', {
            method: 'PUT',
            headers: { 'Content-Type': 'application/octet-stream' },
            body: new Blob([content]),
          }).then((answer) => answer.arrayBuffer()),
        );
      const rows = [
        await compared(bench, 'files.write as a form', {
          ours: () => timed(() => sdk.files.write('/tmp/ours', content)),
          theirs: put,
        }),
        await compared(bench, 'files.write as octets', {
          ours: () => timed(() => sdk.files.write('/tmp/ours', content, { useOctetStream: true })),
          theirs: put,
        }),
      ];
      await rest.run(`head -c ${BYTES} /dev/urandom > /tmp/content`);
      rows.push(
        await compared(bench, 'files.read', {
          ours: () =>
            timed(async () => {
              const { length } = await sdk.files.read('/tmp/content', { format: 'bytes' });
              requireWhole(length);
            }),
          theirs: () =>
            timed(async () => {
              const answer = await byRest(rest, 'files?path=/tmp/content');
              requireWhole((await answer.arrayBuffer()).byteLength);
            }),
        }),
      );
      return rows;
    }),
};

const requireWhole = (length: number): void => {
  if (length !== BYTES) throw new Error(`only ${length} bytes came`);
};

const compared = async (
  bench: Bench,
  what: string,
  sides: Readonly<Record<'ours' | 'theirs', () => Promise<number>>>,
): Promise<Measure> => {
  await sides.theirs();
  await sides.ours();
  return {
    name: `${what}, ${MIB} MiB / by REST`,
    unit: 'MB/s',
    better: 'more',
    reach: 0.8,
    beyond: 0.95,
    ...(await inPairs(bench, sides)),
  };
};
