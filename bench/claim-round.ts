import type { Daemon } from './daemon.ts';
import type { Ask } from './kept-connection.ts';
import { costOf, type Cost, type LoadResult } from './load.ts';

export interface ClaimRound {
  readonly pool: string;
  readonly count: number;
  readonly run: (port: number, asks: readonly Ask[]) => Promise<LoadResult>;
  /** Through E2B's API instead of the REST API. */
  readonly compatible?: boolean;
}

/** Gives all back, and resolves once the pool is full again. */
export const claimRound = async (
  daemon: Daemon,
  { pool, count, run, compatible = false }: ClaimRound,
): Promise<Cost> => {
  const { service } = daemon;
  const port = compatible ? Number(daemon.compatibleUrl.port) : service.port;
  const asks = compatible ? service.compatibleClaims(pool, count) : service.claims(pool, count);
  const cost = await costOf([daemon.pid], 201, () => run(port, asks));
  await service.giveBack(cost.result);
  await service.untilIdle(pool, count);
  await daemon.calm();
  return cost;
};
