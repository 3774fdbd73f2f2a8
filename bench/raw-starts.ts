import { readFileSync } from 'node:fs';
import { pathsOf } from '../src/embedded/spawner/protocol.ts';
import { renderDefinition } from '../src/model/pools/render-definition.ts';
import { SandboxTemplateSchema } from '../src/model/templates/template.ts';
import type { Child } from './child.ts';
import type { Daemon } from './daemon.ts';
import type { Bench } from './figure.ts';
import type { RawOrder } from './raw-launcher.ts';
import { LAUNCHER } from './sandbox.ts';

/** Apart from the daemon's own range. */
const FIRST_UID = 2_100_000_000;

export interface RawStartsTerms {
  readonly bench: Bench;
  /** Sandboxes have its root file system. */
  readonly daemon: Daemon;
  readonly count: number;
  readonly parallel: number;
  readonly cgroups: boolean;
}

/** Until the launcher has started all of them. */
export const rawStarts = async (
  raw: Child<RawOrder, readonly number[]>,
  { bench, daemon, ...terms }: RawStartsTerms,
): Promise<number> => {
  const template = SandboxTemplateSchema.parse(
    JSON.parse(readFileSync('config/templates/default.json', 'utf8')),
  );
  const [tookMs = Number.NaN] = await raw.ask({
    kind: 'starts',
    launcherPath: LAUNCHER,
    rootfs: pathsOf(daemon.dataDir).rootfs,
    folder: bench.folder,
    definition: renderDefinition(template.spec),
    ...terms,
    ...(process.getuid?.() === 0 ? { firstUid: FIRST_UID } : {}),
  });
  return tookMs;
};
