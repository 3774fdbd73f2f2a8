import { hash, timingSafeEqual } from 'node:crypto';
import type { Supervisor } from '../../actors/sandbox/supervisor.ts';
import type { Clock } from '../../contracts/clock.ts';
import { Allowance } from '../../lib/allowance.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import { tooManyLinks } from '../../model/limit-refusals.ts';
import type { Tenant } from '../../model/tenant.ts';
import type { Operations } from '../operations.ts';
import type { ApiKeyMirror } from './api-keys.ts';
import { callerOf } from './authenticate.ts';

export interface SignedLinksDeps {
  readonly apiKeys: Pick<ApiKeyMirror, 'list' | 'check'>;
  readonly supervisor: Pick<Supervisor, 'index' | 'sandbox'>;
  readonly clock: Clock;
  readonly tokensOf: Operations['sandboxTokens'];
}

/**
 * Tokens that one link is tried with; and a second those of all links of one address, and of all
 * that name no sandbox.
 */
const MOST_TRIED = 5_000;
const TRIED_FROM_ADDRESS = 5_000;
const TRIED_PER_SECOND = 20_000;
const MOST_ADDRESSES = 10_000;
const MOST_SANDBOXES = 1_000;
const MOST_KEYS = 64;

/**
 * Finds by which token a link to a file was signed (`/files` of the compatible API). No link says
 * by which key, and one under `E2B_SANDBOX_URL` not even in which sandbox it is: the newest
 * sandboxes are tried, each with the newest keys of its owner. How much is tried is bounded, and no
 * address has more than its share of it.
 */
export const signedLinks = ({
  apiKeys,
  supervisor,
  clock,
  tokensOf,
}: SignedLinksDeps): Operations['signerOf'] => {
  const ofAll = new Allowance({ perSecond: TRIED_PER_SECOND, most: TRIED_PER_SECOND }, clock.now());
  const ofAddress = new Map<string, Allowance>();
  /** Keeps those that asked last. */
  const triesOf = (from: string, now: number): Allowance => {
    const own =
      ofAddress.get(from) ??
      new Allowance({ perSecond: TRIED_FROM_ADDRESS, most: TRIED_FROM_ADDRESS }, now);
    ofAddress.delete(from);
    ofAddress.set(from, own);
    const [oldest] = ofAddress.keys();
    if (oldest !== undefined && ofAddress.size > MOST_ADDRESSES) ofAddress.delete(oldest);
    return own;
  };
  const ownerOf = (id: InstanceId): Tenant | undefined => {
    const snapshot = supervisor.sandbox(id);
    return snapshot?.status === 'Running' ? snapshot.context.record?.claim?.owner : undefined;
  };
  return async ({ sandboxId, from, signature, text }) => {
    const now = clock.now();
    const own = triesOf(from, now);
    // One that says its sandbox is tried little, and waits for nobody else's.
    const allowances = sandboxId === undefined ? [own, ofAll] : [own];
    const waitMs = Math.max(...allowances.map((each) => each.waitMs(now)));
    if (waitMs > 0) throw tooManyLinks(Math.ceil(waitMs / 1_000));
    const given = Buffer.from(signature);
    const sandboxes =
      sandboxId === undefined
        ? supervisor.index.list({ phase: 'Running' }, 0, MOST_SANDBOXES).ids
        : [sandboxId];
    let tried = 0;
    try {
      for (const id of sandboxes) {
        const owner = ownerOf(id);
        for (const key of owner ? apiKeys.list(owner, { offset: 0, limit: MOST_KEYS }).items : []) {
          if (key.expiresAt <= now) continue;
          if ((tried += 1) > MOST_TRIED) return undefined;
          const caller = callerOf(key);
          const expected = Buffer.from(signatureOf(text(tokensOf(caller, id).access)));
          if (given.length === expected.length && timingSafeEqual(given, expected)) {
            apiKeys.check(key);
            return { sandboxId: id, caller, goodFor: 'access' };
          }
        }
      }
      return undefined;
    } finally {
      for (const each of allowances) each.spend(tried, now);
    }
  };
};

/** Signs as E2B's SDKs do. */
export const signatureOf = (text: string): string =>
  `v1_${hash('sha256', text, 'base64').replace(/=+$/, '')}`;
