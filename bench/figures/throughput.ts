import { strongestBare, warmBare, type Bare } from '../bare.ts';
import { Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import type { LoadResult } from '../load-protocol.ts';
import { cpuMsOf } from '../process-facts.ts';

const CLAIMS = 1_000;
const IN_FLIGHT = 32;
const POOL = 'bench';
/** Rounds before anything counts, until the code is compiled. */
const WARM_UP = 2;

export const throughput: Figure = {
  name: 'throughput',
  about:
    'claims a second with 32 in flight until a pool of 1,000 is empty, against the bare server that commits each request, and the one that shares commits',
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load);
    try {
      const { service } = daemon;
      /** Full again, and nothing under way: what runs then has the machine for itself. */
      const full = async (): Promise<void> => {
        await service.untilIdle(POOL, CLAIMS);
        await daemon.calm();
      };
      const claimAll = async (): Promise<Sample> => {
        await full();
        const sample = await sampleOf(daemon.pid, () =>
          bench.load.closed(service.port, service.claims(POOL, CLAIMS), IN_FLIGHT),
        );
        await service.giveBack(sample.result);
        return sample;
      };
      const askAll = async (bare: Bare): Promise<Sample> => {
        await full();
        return await sampleOf(bare.pid, () =>
          bench.load.closed(bare.port, bare.asks(CLAIMS), IN_FLIGHT),
        );
      };
      await service.createPool(POOL, CLAIMS);
      for (let round = 0; round < WARM_UP; round += 1) await claimAll();
      const strongest = await strongestBare(
        bench.folder,
        bench.load,
        async (bare) => (await askAll(bare)).result,
        ({ tookMs }) => tookMs,
      );
      bench.say(`${IN_FLIGHT} in flight: the strongest bare server commits ${strongest.mode}`);
      const direct =
        strongest.mode === 'direct'
          ? strongest
          : await warmBare(bench.folder, bench.load, 'direct');
      const [ours, theirs, alone]: [Sample[], Sample[], Sample[]] = [[], [], []];
      for (let round = 0; round < bench.rounds; round += 1) {
        theirs.push(await askAll(strongest));
        ours.push(await claimAll());
        alone.push(await askAll(direct));
      }
      await Promise.all([...new Set([strongest, direct])].map((bare) => bare.stop()));
      const row = (name: string, others: readonly Sample[]) => ({
        name,
        unit: '/s',
        better: 'more' as const,
        ours: ours.map(({ rate }) => rate),
        theirs: others.map(({ rate }) => rate),
      });
      return [
        {
          ...row(
            `claims/s, ${IN_FLIGHT} in flight, pool of ${CLAIMS}, against a commit a request`,
            alone,
          ),
          reach: 0.6,
          beyond: 0.8,
        },
        row('the same, against a bare server that shares commits', theirs),
        {
          name: `claim processor time, ${IN_FLIGHT} in flight`,
          unit: 'ms',
          better: 'less',
          ours: ours.map(({ cpuMs }) => cpuMs),
          theirs: theirs.map(({ cpuMs }) => cpuMs),
        },
      ];
    } finally {
      await daemon.dispose();
    }
  },
};

interface Sample {
  readonly result: LoadResult;
  /** A second. */
  readonly rate: number;
  /** A request. */
  readonly cpuMs: number;
}

const sampleOf = async (pid: number, run: () => Promise<LoadResult>): Promise<Sample> => {
  const before = cpuMsOf(pid);
  const result = await run();
  const cpuMs = (cpuMsOf(pid) - before) / CLAIMS;
  expectAll(result, 201);
  return { result, rate: (CLAIMS * 1_000) / result.tookMs, cpuMs };
};
