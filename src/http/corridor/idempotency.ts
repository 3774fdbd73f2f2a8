import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import type { Log } from '../../contracts/log.ts';
import {
  idempotencyInFlight,
  idempotencyKeyReused,
  invalidArgument,
} from '../../model/refusals.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { RequestFingerprint } from '../../model/request-fingerprint.ts';
import type { Caller } from '../../model/tenant.ts';
import type { Operations } from '../../services/operations.ts';
import type { Answer } from './route.ts';
import {
  IdempotentRequest,
  RequestNotNew,
  type AskedByManager,
} from '../../actors/request/idempotent-request.ts';

export interface WrittenAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Stored only encrypted with the caller's credential. */
  readonly secret: boolean;
}

export const written = ({ status, body, headers = {}, secret = false }: Answer): WrittenAnswer => ({
  status,
  headers,
  text: JSON.stringify(body),
  secret,
});

export interface IdempotencyDeps {
  readonly operations: Pick<Operations, 'idempotentRequest'>;
  readonly log: Log;
}

export interface MarkedRequest {
  readonly mark: RequestFingerprint;
  /** Absent if the client sent the key. */
  readonly byManager?: AskedByManager;
  readonly caller: Caller;
  /** The caller's API key, which encrypts stored answers. */
  readonly credential: string;
  readonly isElsewhere: boolean;
  readonly opensItself: boolean;
  /** Absent if the effect leaves no record; then the answer is stored before it is sent. */
  readonly earlier:
    | ((instance: InstanceId | undefined) => Promise<WrittenAnswer | undefined>)
    | undefined;
  /** Resolves when a refused attempt's outcome is known; undefined if it is. */
  readonly pendingOutcome: () => Promise<void> | undefined;
  readonly carryOut: (opening: IdempotentRequest) => Promise<WrittenAnswer>;
  /** Called when the answer is stored or never will be. Never rejects. */
  readonly settle: () => Promise<void>;
}

const REPLAYED = { 'Idempotency-Replayed': 'true' } as const;

/**
 * Repetitions within 24 hours get the first 2xx answer, byte for byte. Refuses another body under
 * the same key, and a repetition of a request in progress.
 */
export const answerOnce = async (
  deps: IdempotencyDeps,
  request: MarkedRequest,
): Promise<WrittenAnswer> => {
  const { mark, caller, credential, byManager } = request;
  const opening = deps.operations.idempotentRequest(mark, caller, byManager);
  opening.isRouted = request.isElsewhere;
  try {
    return await answerOpening(deps, request, opening);
  } catch (error) {
    if (!(error instanceof RequestNotNew)) throw error;
    const { opened } = error;
    if (opened.kind === 'answered') {
      await request.settle();
      return replayed(readKept(opened.answer, mark, credential));
    }
    throw opened.kind === 'reused' ? idempotencyKeyReused() : idempotencyInFlight();
  }
};

const answerOpening = async (
  { log }: IdempotencyDeps,
  request: MarkedRequest,
  opening: IdempotentRequest,
): Promise<WrittenAnswer> => {
  const { mark } = opening;
  const effectTells = request.opensItself || request.earlier !== undefined;
  let kept = false;
  try {
    const found = request.opensItself ? undefined : await openAndFind(request, opening);
    const answer = found ?? (await request.carryOut(opening));
    const text = answer.status < 300 ? writeKept(answer, mark, request.credential) : undefined;
    if (text === undefined || !IdempotentRequest.canKeep(text)) {
      await request.settle();
      return answer;
    }
    kept = true;
    // The effect is done.
    const keeping = opening.keep(text).then(
      () => request.settle(),
      (error: unknown) => log.warn({ error }, 'response-not-stored'),
    );
    if (!effectTells && opening.place === undefined) await keeping;
    return found || opening.foundEarlier ? replayed(answer) : answer;
  } finally {
    if (!kept && opening.isOpen) await giveUp(log, request, opening);
  }
};

const openAndFind = async (
  { earlier }: MarkedRequest,
  opening: IdempotentRequest,
): Promise<WrittenAnswer | undefined> => {
  const { instance } = await opening.open();
  return await earlier?.(instance);
};

/** A request with an unknown outcome stays in progress on all replicas. */
const giveUp = async (
  log: Log,
  request: MarkedRequest,
  opening: IdempotentRequest,
): Promise<void> => {
  const pendingOutcome = request.pendingOutcome();
  // If this fails, the key's lease expires soon.
  const givenUp = (pendingOutcome ?? Promise.resolve())
    .then(() => opening.giveUp())
    .catch((error: unknown) => log.warn({ error }, 'request-not-released'));
  if (!pendingOutcome) await givenUp;
};

const KEY = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/;

/** `path` excludes the base. Refuses a malformed Idempotency-Key. */
export const fingerprintOf = (
  caller: Caller,
  request: {
    readonly method: string;
    readonly path: string;
    readonly key: string;
    readonly body: Buffer;
  },
): RequestFingerprint => {
  if (!KEY.test(request.key))
    throw invalidArgument('Idempotency-Key', 'must be 1 to 255 printable ASCII characters');
  return {
    key: hashOf([caller.keyId, request.method, request.path, request.key].join('\n')),
    // The key is never stored, so the hash does not help to guess secrets of the body.
    body: hashOf(Buffer.concat([Buffer.from(`${request.key}\n`), request.body])),
  };
};

/** Only the credential's holder can compute it; independent of the body. */
export const seedOf = (mark: RequestFingerprint, credential: string): Buffer =>
  Buffer.from(hkdfSync('sha256', credential, mark.key, 'sandpool seed', 32));

const hashOf = (data: string | Buffer): string =>
  createHash('sha256').update(data).digest('base64url').slice(0, 22);

const replayed = (answer: WrittenAnswer): WrittenAnswer => ({
  ...answer,
  headers: { ...answer.headers, ...REPLAYED },
});

const writeKept = (answer: WrittenAnswer, mark: RequestFingerprint, credential: string): string => {
  const text = JSON.stringify([answer.status, answer.headers, answer.text]);
  return answer.secret ? `s${seal(text, mark, credential)}` : `p${text}`;
};

const readKept = (kept: string, mark: RequestFingerprint, credential: string): WrittenAnswer => {
  const secret = kept.startsWith('s');
  const text = secret ? unseal(kept.slice(1), mark, credential) : kept.slice(1);
  const [status, headers, body] = JSON.parse(text) as [
    number,
    Readonly<Record<string, string>>,
    string,
  ];
  return { status, headers, text: body, secret };
};

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** AES-256-GCM, with a key from the credential, bound to the request. */
const seal = (text: string, mark: RequestFingerprint, credential: string): string => {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', sealingKey(mark, credential), nonce).setAAD(
    Buffer.from(mark.key),
  );
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64');
};

const unseal = (sealed: string, mark: RequestFingerprint, credential: string): string => {
  const bytes = Buffer.from(sealed, 'base64');
  const decipher = createDecipheriv(
    'aes-256-gcm',
    sealingKey(mark, credential),
    bytes.subarray(0, NONCE_BYTES),
  )
    .setAAD(Buffer.from(mark.key))
    .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  return Buffer.concat([
    decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)),
    decipher.final(),
  ]).toString('utf8');
};

const sealingKey = (mark: RequestFingerprint, credential: string): Buffer =>
  Buffer.from(hkdfSync('sha256', credential, mark.key, 'sandpool kept answer', 32));
