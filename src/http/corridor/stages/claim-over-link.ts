import { z } from 'zod';
import { CLAIM_KEY_HEADER, CLAIM_TERMS_HEADER } from '../../../model/fleet/identity-header.ts';
import type { AskedByManager } from '../../../actors/request/idempotent-request.ts';
import type { Context } from '../../reply/context.ts';

const WRITTEN = /^(first|again) ([0-9a-f-]{36})$/;

const MOST_WAIT_MS = 600_000;

const ToldClaim = z.object({
  /** Overrides the body and the worker's configuration. */
  waitMs: z.int().min(0).max(MOST_WAIT_MS).optional(),
  /** An earlier attempt under its key may have succeeded. */
  mayBeDone: z.boolean().optional(),
});

/** A manager's options for a forwarded claim. */
export interface ToldClaim {
  readonly waitMs?: number;
  readonly mayBeDone?: boolean;
}

export interface ClaimOverLink extends ToldClaim {
  readonly key?: string;
  readonly byManager?: AskedByManager;
}

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
