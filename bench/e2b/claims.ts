import { claimsInTurn } from '../claims-in-turn.ts';
import { COMPATIBLE_FLAGS, Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import type { Measure } from '../measure.ts';

/** Claims a round of each side. */
const CLAIMS = 100;

const p50Row = (
  name: string,
  { ours, theirs }: Awaited<ReturnType<typeof claimsInTurn>>,
): Measure => ({
  name,
  unit: 'ms',
  better: 'less',
  ours: ours.map(({ p50 }) => p50),
  theirs: theirs.map(({ p50 }) => p50),
});

export const create: Figure = {
  name: 'e2b:create',
  about: "a claim as E2B's SDKs make it, against one by the REST API of the same daemon",
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load, COMPATIBLE_FLAGS);
    try {
      const compatible = {
        daemon,
        port: Number(daemon.compatibleUrl.port),
        asks: (pool: string, count: number) => daemon.service.compatibleClaims(pool, count),
      };
      const found = await claimsInTurn(bench, { ours: compatible, theirs: { daemon } }, CLAIMS);
      return [
        {
          ...p50Row('POST /v2/sandboxes / POST /sandboxes, p50', found),
          reach: 1.25,
          beyond: 1.05,
        },
      ];
    } finally {
      await daemon.dispose();
    }
  },
};

export const beside: Figure = {
  name: 'e2b:beside',
  about: "a claim by REST of a daemon that serves E2B's SDKs too, against one that does not",
  run: async (bench) => {
    const both = await Daemon.start(bench.load, COMPATIBLE_FLAGS);
    try {
      const one = await Daemon.start(bench.load);
      try {
        const sides = { ours: { daemon: both }, theirs: { daemon: one } };
        const found = await claimsInTurn(bench, sides, CLAIMS);
        return [
          { ...p50Row('claim by REST, the compatible port on / off, p50', found), reach: 1.02 },
        ];
      } finally {
        await one.dispose();
      }
    } finally {
      await both.dispose();
    }
  },
};
