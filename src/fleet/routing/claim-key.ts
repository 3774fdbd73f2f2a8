import { randomUUID } from 'node:crypto';
import { type Clock, pause } from '../../contracts/clock.ts';
import type { AnswerLost } from '../../model/fleet/cluster-refusals.ts';
import { Refusal } from '../../model/refusals.ts';
import type { FleetOperations, WayToCluster } from '../replication/fleet-operations.ts';
import type { AskedByManager } from '../../actors/request/idempotent-request.ts';
import type { ToldClaim } from '../../http/corridor/stages/claim-over-link.ts';
import type { Answer } from '../../http/corridor/route.ts';
import { errorCodeIn } from './fleet-names.ts';

export const newClaimKey = (): Readonly<Record<AskedByManager, string>> => {
  const key = randomUUID();
  return { first: `first ${key}`, again: `again ${key}` };
};

export const toldTerms = ({ waitMs, mayBeDone }: ToldClaim): string | undefined =>
  waitMs === undefined && !mayBeDone ? undefined : JSON.stringify({ waitMs, mayBeDone });

/** A link reconnects within about a second. */
const AGAIN_MS = 2_500;
const MOST_ASKED = 4;
const PAUSE_MS = 100;

export interface LostClaim {
  readonly lost: AnswerLost;
  readonly clusterId: string;
  readonly deps: { readonly fleet: Pick<FleetOperations, 'wayTo'>; readonly clock: Clock };
  readonly signal: AbortSignal;
  readonly ask: (way: WayToCluster, withinMs: number) => Promise<Answer>;
}

/**
 * Repeats a claim whose answer was lost with the same key, so only one sandbox is claimed. Rejects
 * with the first refusal unless it succeeds: the first request may still arrive.
 */
export const askAgain = async ({
  lost,
  clusterId,
  deps: { fleet, clock },
  signal,
  ask,
}: LostClaim): Promise<Answer> => {
  const until = clock.now() + AGAIN_MS;
  for (let asked = 0; asked < MOST_ASKED;) {
    await pause(clock, PAUSE_MS * 2 ** asked, signal);
    const withinMs = until - clock.now();
    if (signal.aborted || withinMs <= 0) break;
    const way = wayIn(fleet, clusterId);
    if (!way) continue;
    asked += 1;
    const answer = await ask(way, withinMs).catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
      return undefined;
    });
    if (answer && answer.status < 300) return answer;
    if (answer && errorCodeIn(answer.body) !== 'IDEMPOTENCY_IN_FLIGHT') break;
  }
  throw lost;
};

const wayIn = (
  fleet: Pick<FleetOperations, 'wayTo'>,
  clusterId: string,
): WayToCluster | undefined => {
  try {
    return fleet.wayTo(clusterId);
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
};
