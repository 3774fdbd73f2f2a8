import { inPairs, type Figure } from '../figure.ts';
import { rowOf, type Measure } from '../measure.ts';
import { Sandbox } from '../sandbox.ts';
import { BYTES, download, MIB, rateOf, run, stream, upload } from '../transfers.ts';

export const files: Figure = {
  name: 'files',
  about: `${MIB} MiB up, down, and as a stream of output, against only the launcher in the same sandbox`,
  run: async (bench) => {
    await using sandbox = await Sandbox.start(bench);
    const { place } = sandbox;
    const raw = async (argv: readonly string[], terms = {}): Promise<number> =>
      rateOf(await sandbox.flows(argv, terms));
    const fresh = async (transfer: () => Promise<number>): Promise<number> => {
      await run(place, 'rm -f /tmp/ours /tmp/theirs');
      return await transfer();
    };
    const row = async (
      name: string,
      sides: Parameters<typeof inPairs<number>>[1],
    ): Promise<Measure> =>
      rowOf(
        { name, unit: 'MB/s', better: 'more', reach: 0.5, beyond: 0.8 },
        await inPairs(bench, sides, 1),
        (rate) => rate,
      );
    await run(place, `head -c ${BYTES} /dev/urandom > /tmp/content`);
    return [
      await row(`upload of ${MIB} MiB / dd by only the launcher`, {
        ours: () => fresh(() => upload(place)),
        theirs: () => fresh(() => raw(['/bin/dd', 'of=/tmp/theirs', 'bs=64k'], { hasInput: true })),
      }),
      await row(`download of ${MIB} MiB / dd by only the launcher`, {
        ours: () => fresh(() => download(place)),
        theirs: () => fresh(() => raw(['/bin/dd', 'if=/tmp/content', 'bs=64k'])),
      }),
      await row('one stream of random bytes / cat by only the launcher', {
        ours: () => fresh(() => stream(place)),
        theirs: () => fresh(() => raw(['/bin/cat', '/tmp/content'])),
      }),
    ];
  },
};
