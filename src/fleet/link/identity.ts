import {
  createHash,
  createHmac,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  timingSafeEqual,
  type KeyObject,
} from 'node:crypto';
import { z } from 'zod';
import type { RoutedRequest } from '../../contracts/fleet/cluster-links.ts';
import type { Clock } from '../../contracts/clock.ts';
import { RecentSet } from '../../lib/recent-set.ts';
import { unavailable, type Refusal } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';

const LIFETIME_MS = 10_000;
/** Exceeds the two ends' difference about the start of a link. */
const EARLY_MS = 10_000;
/** A clock was paused if this many identities in a row are equally late over this time. */
const OFF_IN_A_ROW = 3;
const OFF_FOR_MS = 2_000;
const OFF_ALIKE_MS = 1_000;
/** Unit: ms per ms. */
const MOST_DRIFT = 0.0005;
/** Exceeds a link's requests within an identity's lifetime. */
const MOST_SEEN = 200_000;
const MOST_TEXT = 4_096;

const text = z.string().max(256);

/**
 * Times are ms since the link began, by each end's own clock. Clocks drift, so the checking end
 * measures from the recent request with the shortest delay.
 */
const Claims = z.object({
  aud: text,
  link: text,
  jti: z.int(),
  at: z.number(),
  req: text,
  caller: z.object({
    namespace: text,
    team: text,
    user: text,
    role: z.enum(['user', 'admin']),
    keyId: text,
    keyEndsAt: z.number().optional(),
    gated: z.literal(true).optional(),
    makers: z.array(text).max(64).optional(),
  }),
});

export interface LinkTerms {
  readonly clusterId: string;
  readonly linkId: string;
  readonly clock: Clock;
}

/** Signs the identity of a request's caller with the secret of the link. */
export const identitySigner = (
  signer: Pick<LinkSecret, 'sign'>,
  { clusterId, linkId, clock }: LinkTerms,
) => {
  const began = clock.now();
  let last = 0;
  return (caller: Caller, request: RoutedRequest): string => {
    last += 1;
    const { namespace, team, user, role, keyId, keyEndsAt, gated, makers } = caller;
    const claims: z.infer<typeof Claims> = {
      aud: clusterId,
      link: linkId,
      jti: last,
      at: clock.now() - began,
      req: digestOf(request),
      caller: {
        namespace,
        team,
        user,
        role,
        keyId,
        keyEndsAt,
        gated,
        makers: makers ? [...makers] : undefined,
      },
    };
    const signed = Buffer.from(JSON.stringify(claims)).toString('base64url');
    return `${signed}.${signer.sign(signed)}`;
  };
};

/**
 * Checks signature, cluster, link, request, age and single use, at the worker. Returns UNAVAILABLE
 * if only the age is wrong. Calls `isOff` if a clock was paused, which makes later identities over
 * this link invalid: an identity from the future proves it, a late one only if several are equally
 * late.
 */
export const identityCheck = (
  isSigned: LinkSecret['isSigned'],
  { clusterId, linkId, clock, isOff }: LinkTerms & { readonly isOff: () => void },
) => {
  const began = clock.now();
  const seen = new RecentSet(MOST_SEEN);
  let quickest = { delay: 0, at: began };
  let late: { readonly age: number; readonly firstAt: number; count: number } | undefined;
  const noteLate = (age: number, at: number): void => {
    if (!late || Math.abs(age - late.age) > OFF_ALIKE_MS) late = { age, firstAt: at, count: 0 };
    late.count += 1;
    if (late.count >= OFF_IN_A_ROW && at - late.firstAt >= OFF_FOR_MS) isOff();
  };
  return (identity: string, request: RoutedRequest): Caller | Refusal | undefined => {
    const [signed = '', signature = '', ...more] = identity.split('.');
    if (identity.length > MOST_TEXT || more.length > 0 || !isSigned(signed, signature))
      return undefined;
    const claims = claimsIn(signed);
    if (!claims || claims.aud !== clusterId || claims.link !== linkId) return undefined;
    const now = clock.now();
    const delay = now - began - claims.at;
    const drift = (now - quickest.at) * MOST_DRIFT;
    const age = delay - quickest.delay;
    if (claims.req !== digestOf(request) || seen.has(String(claims.jti))) return undefined;
    if (age > LIFETIME_MS + drift || age < -EARLY_MS - drift) {
      if (age < 0) isOff();
      else noteLate(age, claims.at);
      return unavailable('the request took too long over the link; try again');
    }
    late = undefined;
    seen.add(String(claims.jti));
    if (age <= drift) quickest = { delay, at: now };
    return callerIn(claims);
  };
};

const claimsIn = (signed: string): z.infer<typeof Claims> | undefined => {
  try {
    return Claims.safeParse(JSON.parse(Buffer.from(signed, 'base64url').toString())).data;
  } catch {
    return undefined;
  }
};

const callerIn = ({ caller: { keyEndsAt, gated, makers, ...rest } }: z.infer<typeof Claims>) => ({
  ...rest,
  ...(keyEndsAt === undefined ? {} : { keyEndsAt }),
  ...(gated ? { gated } : {}),
  ...(makers ? { makers } : {}),
});

const digestOf = ({ method, target, idempotencyKey = '' }: RoutedRequest): string =>
  createHash('sha256')
    .update(JSON.stringify([method, target, idempotencyKey]))
    .digest('base64url');

export interface LinkSecret {
  readonly sign: (text: string) => string;
  readonly isSigned: (text: string, signature: string) => boolean;
}

export interface SecretHalf {
  /** X25519, SPKI in base64; not secret. */
  readonly publicKey: string;
  /**
   * The secret is private if each end has authenticated this transcript, which holds both public
   * keys. Undefined if `theirs` is malformed, or a weak key with a predictable secret.
   */
  readonly agree: (theirs: string, transcript: string) => LinkSecret | undefined;
}

export const newSecretHalf = (): SecretHalf => {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  return {
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
    agree: (theirs, transcript) => {
      const shared = sharedWith(privateKey, theirs);
      return shared && secretOf(Buffer.from(hkdfSync('sha256', shared, transcript, PURPOSE, 32)));
    },
  };
};

const sharedWith = (privateKey: KeyObject, theirs: string): Buffer | undefined => {
  try {
    const der = { key: Buffer.from(theirs, 'base64'), format: 'der', type: 'spki' } as const;
    return diffieHellman({ privateKey, publicKey: createPublicKey(der) });
  } catch {
    return undefined;
  }
};

const PURPOSE = 'sandpool link, identities';

const secretOf = (bytes: Buffer): LinkSecret => {
  const key = createSecretKey(bytes);
  const macOf = (text: string): Buffer => createHmac('sha256', key).update(text).digest();
  return {
    sign: (text) => macOf(text).toString('base64url'),
    isSigned: (text, signature) => {
      const given = Buffer.from(signature, 'base64url');
      const mac = macOf(text);
      return given.length === mac.length && timingSafeEqual(given, mac);
    },
  };
};
