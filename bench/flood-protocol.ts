import type { Ask } from './kept-connection.ts';

/**
 * What the flood process is told: these requests in turn, so many a second for so long, whatever
 * the answers do.
 */
export interface FloodOrder {
  readonly port: number;
  readonly asks: readonly Ask[];
  readonly perSecond: number;
  readonly forMs: number;
  readonly connections: number;
  /**
   * Requests that wait for answers on one connection; where all have as many, what is due is not
   * sent.
   */
  readonly mostWaiting: number;
}

export interface FloodResult {
  readonly sent: number;
  readonly notSent: number;
  /** Answers by status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Connections that ended; they are opened anew. */
  readonly ended: number;
}
