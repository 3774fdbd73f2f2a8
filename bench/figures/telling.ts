import { claimsInTurn, type ClaimSample } from '../claims-in-turn.ts';
import { Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';

/** Claims a round of each side. */
const CLAIMS = 200;
const SILENT: readonly string[] = [
  '--metrics-listen',
  'none',
  '--audit-mode',
  'off',
  '--log-level',
  'error',
];

export const telling: Figure = {
  name: 'telling',
  about: 'a claim with logs, metrics and audit, against a daemon without them',
  run: async (bench) => {
    const whole = await Daemon.start(bench.load);
    try {
      const silent = await Daemon.start(bench.load, SILENT);
      try {
        const sides = { ours: { daemon: whole }, theirs: { daemon: silent } };
        const found = await claimsInTurn(bench, sides, CLAIMS);
        const row = (name: string, of: (sample: ClaimSample) => number) =>
          ({
            name: `claim ${name}, with logs, metrics and audit / without`,
            unit: 'ms',
            better: 'less',
            ours: found.ours.map(of),
            theirs: found.theirs.map(of),
          }) as const;
        return [
          { ...row('p50', ({ p50 }) => p50), reach: 1.15, beyond: 1.05 },
          row('processor time', ({ cpuMs }) => cpuMs),
        ];
      } finally {
        await silent.dispose();
      }
    } finally {
      await whole.dispose();
    }
  },
};
