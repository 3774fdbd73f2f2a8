import { createHash, hash, timingSafeEqual } from 'node:crypto';
import type { Supervisor } from '../../actors/sandbox/supervisor.ts';
import type { Clock } from '../../contracts/clock.ts';
import { Allowance, Allowances } from '../../lib/allowance.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import { tooManyLinks } from '../../model/limit-refusals.ts';
import type { Tenant } from '../../model/tenant.ts';
import type { KeyOperations, SignedLink, TokenBearer } from './key-operations.ts';
import type { ApiKeyMirror } from './api-keys.ts';
import { callerOf } from './authenticate.ts';

export interface SignedLinksDeps {
  readonly apiKeys: Pick<ApiKeyMirror, 'list' | 'find' | 'check'>;
  readonly supervisor: Pick<Supervisor, 'index' | 'sandbox'>;
  readonly clock: Clock;
  readonly tokensOf: KeyOperations['sandboxTokens'];
}

/**
 * Tokens tried for one link; per second for all links of one address, and for all links that name
 * no sandbox of this cluster.
 */
const MOST_TRIED = 5_000;
const TRIED_FROM_ADDRESS = 5_000;
const TRIED_PER_SECOND = 20_000;
const MOST_SANDBOXES = 1_000;
const MOST_KEYS = 64;
const MOST_SIGNED = 10_000;

/**
 * Finds the token that signed a link to a file (`/files` of the compatible API). A link does not
 * name its key, and perhaps not its sandbox. So the last signing key is tried first, then the
 * newest sandboxes with their owners' newest keys. The attempts are bounded, in total and per
 * address.
 */
export const signedLinks = (deps: SignedLinksDeps): KeyOperations['signerOf'] => {
  const { apiKeys, clock, tokensOf } = deps;
  const ofAll = new Allowance({ perSecond: TRIED_PER_SECOND, most: TRIED_PER_SECOND }, clock.now());
  const ofAddress = new Allowances({ perSecond: TRIED_FROM_ADDRESS, most: TRIED_FROM_ADDRESS });
  const signedLast = new Map<string, string>();
  const lastOf = ({ sandboxId, clusterId }: SignedLink): Candidate | undefined => {
    const key = apiKeys.find(signedLast.get(`${clusterId} ${sandboxId}`) ?? '');
    return key && sandboxId !== undefined ? { sandboxId, key } : undefined;
  };
  return async (link) => {
    const { clusterId, from } = link;
    const now = clock.now();
    const isBy = signer(link);
    const goodFor = ({ sandboxId, key }: Candidate): TokenBearer | undefined => {
      const caller = callerOf(key);
      if (key.expiresAt <= now) return undefined;
      if (!isBy(tokensOf(caller, sandboxId, clusterId).access)) return undefined;
      apiKeys.check(key);
      if (clusterId === undefined) return { sandboxId, caller, goodFor: 'access' };
      const name = `${clusterId} ${sandboxId}`;
      keepLast(signedLast, { name, value: key.keyId, most: MOST_SIGNED });
      return { sandboxId, clusterId, caller, goodFor: 'access' };
    };
    const last = lastOf(link);
    const found = last && goodFor(last);
    if (found) return found;
    const own = ofAddress.of(from, now);
    // A link that names its sandbox needs few attempts, so only the allowance of its address
    // applies.
    const isNamed = link.sandboxId !== undefined && clusterId === undefined;
    const allowances = isNamed ? [own] : [own, ofAll];
    const waitMs = Math.max(...allowances.map((each) => each.waitMs(now)));
    if (waitMs > 0) throw tooManyLinks(Math.ceil(waitMs / 1_000));
    let tried = 0;
    try {
      for (const candidate of candidatesOf(deps, link)) {
        if ((tried += 1) > MOST_TRIED) return undefined;
        const bearer = goodFor(candidate);
        if (bearer) return bearer;
      }
      return undefined;
    } finally {
      for (const each of allowances) each.spend(tried, now);
    }
  };
};

function* candidatesOf(
  { apiKeys, supervisor }: SignedLinksDeps,
  { sandboxId, clusterId }: SignedLink,
): Generator<Candidate> {
  if (sandboxId !== undefined && clusterId !== undefined) {
    for (const key of apiKeys.list(undefined, { offset: 0, limit: MOST_TRIED }).items)
      yield { sandboxId, key };
    return;
  }
  const newest = () => supervisor.index.list({ phase: 'Running' }, 0, MOST_SANDBOXES).ids;
  for (const id of sandboxId === undefined ? newest() : [sandboxId]) {
    const owner = ownerOf(supervisor, id);
    const keys = owner ? apiKeys.list(owner, { offset: 0, limit: MOST_KEYS }).items : [];
    for (const key of keys) yield { sandboxId: id, key };
  }
}

const ownerOf = (supervisor: SignedLinksDeps['supervisor'], id: InstanceId): Tenant | undefined => {
  const snapshot = supervisor.sandbox(id);
  return snapshot?.status === 'Running' ? snapshot.context.record?.claim?.owner : undefined;
};

const signer = ({ signature, before, after }: SignedLink): ((token: string) => boolean) => {
  const given = Buffer.from(signature);
  const begun = createHash('sha256').update(before);
  return (token) => {
    const expected = Buffer.from(spelled(begun.copy().update(`${token}${after}`).digest('base64')));
    return given.length === expected.length && timingSafeEqual(given, expected);
  };
};

interface Candidate {
  readonly sandboxId: InstanceId;
  readonly key: ApiKeyRecord;
}

const keepLast = <T>(
  all: Map<string, T>,
  { name, value, most }: { readonly name: string; readonly value: T; readonly most: number },
): void => {
  all.delete(name);
  all.set(name, value);
  const [oldest] = all.keys();
  if (oldest !== undefined && all.size > most) all.delete(oldest);
};

/** Signs like E2B's SDKs. */
export const signatureOf = (text: string): string => spelled(hash('sha256', text, 'base64'));

const spelled = (digest: string): string => `v1_${digest.replace(/=+$/, '')}`;
