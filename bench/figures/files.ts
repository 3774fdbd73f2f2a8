import type { Socket } from 'node:net';
import { once } from 'node:events';
import { readWhole } from '../answer-stream.ts';
import { withSandbox, type ClaimedSandbox } from '../claimed-sandbox.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import type { Measure } from '../measure.ts';
import { quantile } from '../statistics.ts';

const MIB = 64;
const BYTES = MIB << 20;
const PIECE = Buffer.alloc(64 << 10, 'a line of text that is of no use to anybody else here\n');
const ENTRIES = 10_000;
const LISTS = 5;

export const files: Figure = {
  name: 'files',
  about: `${MIB} MiB up and down, against dd by the launcher alone; a list of ${ENTRIES}, against ls -f`,
  run: async (bench) =>
    await withSandbox(bench, async (sandbox) => [
      await uploads(bench, sandbox),
      await downloads(bench, sandbox),
      await lists(bench, sandbox),
    ]),
};

const rate = (tookMs: number): number => MIB / (tookMs / 1_000);

const besideDd = async (
  bench: Bench,
  what: string,
  sides: Readonly<Record<'ours' | 'theirs', () => Promise<number>>>,
): Promise<Measure> => ({
  name: `${what} of ${MIB} MiB / dd by the launcher alone`,
  unit: 'MB/s',
  better: 'more',
  reach: 0.5,
  beyond: 0.8,
  ...(await inPairs(bench, sides)),
});

const uploads = async (bench: Bench, sandbox: ClaimedSandbox): Promise<Measure> => {
  const ask = sandbox.ask({
    method: 'PUT',
    path: 'files?path=/tmp/ours',
    headers: ['Content-Type: application/octet-stream', `Content-Length: ${BYTES}`],
  });
  const send = async (socket: Socket): Promise<void> => {
    for (let left = BYTES; left > 0; left -= PIECE.length)
      if (!socket.write(PIECE)) await once(socket, 'drain');
  };
  const ours = async (): Promise<number> => {
    await sandbox.run('rm -f /tmp/ours /tmp/theirs');
    return rate((await readWhole(ask, send)).tookMs);
  };
  const theirs = async (): Promise<number> => {
    await sandbox.run('rm -f /tmp/ours /tmp/theirs');
    return rate(await sandbox.flows(['/bin/dd', 'of=/tmp/theirs', 'bs=64k'], BYTES));
  };
  await theirs();
  await ours();
  return await besideDd(bench, 'upload', { ours, theirs });
};

const downloads = async (bench: Bench, sandbox: ClaimedSandbox): Promise<Measure> => {
  await sandbox.run(`rm -f /tmp/ours /tmp/theirs; head -c ${BYTES} /dev/urandom > /tmp/content`);
  const ask = sandbox.ask({ method: 'GET', path: 'files?path=/tmp/content' });
  const ours = async (): Promise<number> => {
    const { bytes, tookMs } = await readWhole(ask);
    if (bytes < BYTES) throw new Error(`only ${bytes} bytes came`);
    return rate(tookMs);
  };
  const theirs = async (): Promise<number> =>
    rate(await sandbox.flows(['/bin/dd', 'if=/tmp/content', 'bs=64k']));
  await ours();
  await theirs();
  return await besideDd(bench, 'download', { ours, theirs });
};

const lists = async (bench: Bench, sandbox: ClaimedSandbox): Promise<Measure> => {
  await sandbox.run(`mkdir /tmp/many && cd /tmp/many && seq ${ENTRIES} | xargs touch`);
  const ask = sandbox.ask({
    method: 'GET',
    path: `files/list?path=/tmp/many&limit=${ENTRIES}`,
  });
  const several = async (one: () => Promise<number>): Promise<number> => {
    const found: number[] = [];
    for (let at = 0; at < LISTS; at += 1) found.push(await one());
    return quantile(found, 0.5);
  };
  const ours = async (): Promise<number> => {
    const { tookMs, end } = await readWhole(ask);
    if (!end.includes(']') || end.includes('nextCursor')) throw new Error(`a part came: ${end}`);
    return tookMs;
  };
  const theirs = (): Promise<number> => sandbox.flows(['/bin/ls', '-f', '/tmp/many']);
  await several(ours);
  await several(theirs);
  return {
    name: `list of ${ENTRIES} / ls -f by the launcher alone`,
    unit: 'ms',
    better: 'less',
    reach: 3,
    beyond: 1.5,
    ...(await inPairs(bench, {
      ours: () => several(ours),
      theirs: () => several(theirs),
    })),
  };
};
