import type { Figure } from '../figure.ts';
import { atScale, severalManagers } from '../fleet/at-scale.ts';
import { cuts } from '../fleet/cuts.ts';
import { idleLinks, lists, managerAlone } from '../fleet/many-workers.ts';
import { calls, claims } from '../fleet/routed.ts';
import { file, terminal } from '../fleet/streams.ts';

/** What a manager costs beside its clusters asked directly, and where one ends. */
export const fleet: readonly Figure[] = [
  claims,
  calls,
  terminal,
  file,
  cuts,
  lists,
  idleLinks,
  managerAlone,
  atScale,
  severalManagers,
];
