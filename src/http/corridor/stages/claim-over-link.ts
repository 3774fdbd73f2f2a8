import { z } from 'zod';
import { CLAIM_KEY_HEADER, CLAIM_TERMS_HEADER } from '../../../model/fleet/identity-header.ts';
import type { AskedByManager } from '../../../actors/request/idempotent-request.ts';
import type { Context } from '../../reply/context.ts';

const WRITTEN = /^(first|again) ([0-9a-f-]{36})$/;

/** Longer than any claim waits. */
const MOST_WAIT_MS = 600_000;

const ToldClaim = z.object({
  /** In place of what the body, or the worker's configuration, says. */
  waitMs: z.int().min(0).max(MOST_WAIT_MS).optional(),
  /** The claim was approved, and may have been carried out under its key before. */
  mayBeDone: z.boolean().optional(),
});

/** Says how a worker is to carry out a claim that its manager passes on. */
export interface ToldClaim {
  readonly waitMs?: number;
  readonly mayBeDone?: boolean;
}

/** Holds what came with a claim over a link; is empty where it came another way. */
export interface ClaimOverLink extends ToldClaim {
  /** A key that the manager made. */
  readonly key?: string;
  readonly byManager?: AskedByManager;
}

/** Reads what a manager says of a claim that came over a link, and its key. */
export const claimOverLink = ({ req }: Context): ClaimOverLink => ({
  ...toldIn(req.headers[CLAIM_TERMS_HEADER]),
  ...keyIn(req),
});

const toldIn = (header: string | readonly string[] | undefined): ToldClaim => {
  if (typeof header !== 'string') return {};
  try {
    return ToldClaim.safeParse(JSON.parse(header)).data ?? {};
  } catch {
    return {};
  }
};

const keyIn = ({ headers }: Context['req']): Pick<ClaimOverLink, 'key' | 'byManager'> => {
  const [, use, key] = WRITTEN.exec(String(headers[CLAIM_KEY_HEADER])) ?? [];
  return key === undefined ? {} : { key, byManager: use === 'first' ? 'first' : 'again' };
};
