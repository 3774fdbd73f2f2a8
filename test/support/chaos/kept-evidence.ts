import {
  createReadStream,
  createWriteStream,
  mkdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ChaosReport } from './chaos-run.ts';
import type { Evidence } from './history.ts';

/** Too long for one text. */
const LISTS = ['calls', 'changes', 'sightings', 'rests'] as const;

/** Lists have an item per line. */
export const keepEvidence = async (
  folder: string,
  { evidence, violations, logs }: ChaosReport,
): Promise<void> => {
  mkdirSync(folder, { recursive: true });
  for (const list of LISTS)
    await pipeline(
      Readable.from(linesOf(evidence[list])),
      createWriteStream(join(folder, `${list}.jsonl`)),
    );
  const {
    calls: _calls,
    changes: _changes,
    sightings: _sightings,
    rests: _rests,
    ...rest
  } = evidence;
  writeFileSync(join(folder, 'evidence.json'), JSON.stringify(rest, undefined, 1));
  writeFileSync(join(folder, 'violations.json'), JSON.stringify(violations, undefined, 1));
  logs.forEach((log, n) => {
    writeFileSync(join(folder, `replica-${n}.log`), log);
  });
};

export const keptEvidence = async (folder: string): Promise<Evidence> => {
  const rest = JSON.parse(readFileSync(join(folder, 'evidence.json'), 'utf8')) as Omit<
    Evidence,
    (typeof LISTS)[number]
  >;
  const lists: Record<string, unknown[]> = {};
  for (const list of LISTS) {
    const items: unknown[] = [];
    for await (const line of createInterface({
      input: createReadStream(join(folder, `${list}.jsonl`)),
    }))
      items.push(JSON.parse(line));
    lists[list] = items;
  }
  return { ...rest, ...lists } as Evidence;
};

function* linesOf(items: readonly object[]): Generator<string> {
  for (const item of items) yield `${JSON.stringify(item)}\n`;
}
