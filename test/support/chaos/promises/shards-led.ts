import { SHARDS } from '../../../../src/model/shards.ts';
import { longestWithout } from '../calm.ts';
import type { Case } from '../case.ts';

/** A lease's end, the next holder's barrier, and a hand-over. */
const WITHIN_MS = 10_000;

/** After 10 s of calm one replica leads each shard. */
export const shardsLed = ({ rests }: Case): readonly string[] =>
  rests.flatMap((rest) =>
    Array.from({ length: SHARDS }, (_, shard) => shard).flatMap((shard) => {
      const leaders = (led: (typeof rest.looks)[number]['led']): readonly number[] =>
        led.flatMap((shards, n) => (shards?.includes(shard) ? [n] : []));
      const withoutMs = longestWithout(rest, ({ led }) =>
        led.includes(undefined) ? undefined : leaders(led).length === 1,
      );
      if (withoutMs < WITHIN_MS) return [];
      const last = leaders(rest.looks.at(-1)?.led ?? []);
      return [
        `shard ${shard} was led by ${last.length === 0 ? 'nobody' : `replicas ${last.join(', ')}`} for ${withoutMs.toFixed(0)} ms of calm, in ${rest.from.toFixed(0)}-${rest.until.toFixed(0)}`,
      ];
    }),
  );
