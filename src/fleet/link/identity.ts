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

/** An identity is good for so long after it was signed. */
const LIFETIME_MS = 10_000;
/** Further than the two ends of a link can disagree about when it began. */
const EARLY_MS = 10_000;
/** An end's clock stood still if this many in a row, over this long, are late by the same. */
const OFF_IN_A_ROW = 3;
const OFF_FOR_MS = 2_000;
const OFF_ALIKE_MS = 1_000;
/** More than clocks of two machines run apart, in ms for each ms. */
const MOST_DRIFT = 0.0005;
/** More than a link carries in the lifetime of an identity. */
const MOST_SEEN = 200_000;
const MOST_TEXT = 4_096;

const text = z.string().max(256);

/**
 * Short names, since it comes with each request. Times are milliseconds since the link began, by
 * each end's own clock: so clocks may differ by any amount. Since they do not run alike either, the
 * checking end measures from the request that was the quickest to come of late.
 */
const Claims = z.object({
  /** The cluster that it is for. */
  aud: text,
  /** The link that it is for. */
  link: text,
  /** Its number on this link. */
  jti: z.int(),
  at: z.number(),
  /** Digest of the request that it is for. */
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

/**
 * Signs who asks, at the manager: by the secret of the link, or by the manager's own key for a
 * worker that has none.
 */
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
 * Checks identities at the worker: signature, cluster, link, request, age, and that it comes for
 * the first time. Undefined where anything is wrong; UNAVAILABLE where it is right but for its age.
 *
 * The clock of a VM stands still during a snapshot or a live migration, and that of a laptop while
 * it is suspended. Then no identity over this link would be good any more, and `isOff` is called.
 * One that comes before it was signed proves it. Late ones prove it if several in a row are late by
 * the same, since a single one may have waited on the way.
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

/** Signs texts, and tells whether one was signed by the same secret. */
export interface LinkSecret {
  readonly sign: (text: string) => string;
  readonly isSigned: (text: string, signature: string) => boolean;
}

/** One end's half of a secret that both ends of a link agree on, for that link alone. */
export interface SecretHalf {
  /** A key of X25519, SPKI in base64. It says nothing about the secret. */
  readonly publicKey: string;
  /**
   * Returns what both ends come to, which nobody between them does, where each has proved that this
   * transcript, which holds both public keys, is its own. Undefined where theirs is no such key,
   * or one of which anybody knows what it comes to.
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
