import { hash } from 'node:crypto';
import { Readable } from 'node:stream';
import {
  approvalDenied,
  madeAnew,
  tooLargeToApprove,
} from '../../model/approvals/approval-refusals.ts';
import {
  ruleFor,
  strictestOf,
  subjectOf,
  type PolicySubject,
} from '../../model/approvals/policy.ts';
import { adminRequired, invalidArgument, type Refusal } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';
import type { ApprovalGate, HeldRequest } from '../../services/approvals/approval-gate.ts';
import type { Grant } from '../../services/approvals/grant.ts';
import type { Context } from '../reply/context.ts';
import { refuseAdminFields } from './admin-fields.ts';
import { withoutBase } from '../limits/request-head.ts';
import { statusOf, refusalOf } from '../reply/error-table.ts';
import { AnsweredElsewhere, FREE, type Pass } from './pass.ts';
import { WAIT_PARAMETER } from './query.ts';
import { resolvedName, type ResolvedName } from './resolved-name.ts';
import type { AnyRequest, Route } from './route.ts';

export interface GatingDeps {
  readonly gate: ApprovalGate;
  /** The uid of what a request names, where names are used again; throws where it is not there. */
  readonly subjectOf: (row: Route, of: ResolvedName, caller: Caller) => Promise<string | undefined>;
}

export interface Arrived {
  readonly row: Route;
  readonly context: Context;
  readonly request: AnyRequest;
  readonly caller: Caller;
  readonly bytes: Buffer;
  /** The body as it came, before its schema read it. */
  readonly value: unknown;
  /** Fields of it that the row does not know. */
  readonly unknown: readonly string[];
  readonly api: 'REST' | 'compatible';
  /** Refuses what the other cluster has not that the path names; absent: it names none. */
  readonly requireThere: (() => Promise<void>) | undefined;
  /** Reads the body of a row that takes a stream. */
  readonly readStream: () => Promise<Buffer>;
}

/** A body that a person can look at, and a record can hold. */
const MOST_HELD_BYTES = 262_144;
const MOST_WAIT_SECONDS = 300;
const MOST_QUERY = 4_096;
const MOST_PATH = 2_048;
const MOST_HEADER = 512;

/** The headers that say what a request means. */
const BOUND_HEADERS = [
  'accept',
  'content-type',
  'idempotency-key',
  'if-match',
  'if-none-match',
  'if-range',
  'last-event-id',
  'range',
  'x-session-id',
] as const;

const SESSION_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Whether any rule may hold requests of the row. */
export const mayBeHeld = ({ gate }: GatingDeps, row: Route): boolean =>
  row.rules?.becomes !== undefined ||
  row.rules?.also !== undefined ||
  gate.rulesFor((row.rules?.as ?? row).operationId, methodOf(row)).length > 0;

/** The method that rules look at: of the row that it comes to. */
const methodOf = ({ method, rules }: Route): Route['method'] => rules?.as?.method ?? method;

/**
 * Has the policy look at a request, before anything is done: it is free, has a grant, waits for
 * one, or is refused with APPROVAL_REQUIRED or APPROVAL_DENIED. Rules look at the operation and the
 * thing that the request comes to, however both are spelled.
 */
export const passOf = async (
  { gate, subjectOf }: GatingDeps,
  arrived: Arrived,
): Promise<{ readonly pass: Pass; readonly request: AnyRequest; readonly bytes: Buffer }> => {
  const { row, context, caller } = arrived;
  const name = resolvedName(row, arrived.request, caller);
  if (caller.role !== 'admin' && name.namespace !== caller.namespace)
    throw ofAnother(row, arrived.request, caller);
  const subjects = subjectsOf(arrived, name);
  const rule = strictestOf(
    subjects.map((each) => ruleFor(gate.rulesFor(each.operation, each.method), each)),
  );
  if (!rule || rule.verdict === 'allow') return { ...arrived, pass: FREE };
  context.state.isHeld = true;
  if (rule.verdict === 'deny') throw approvalDenied(undefined);
  const waitMs = waitOf(context.querystring);
  const bytes = row.media?.takes ? await arrived.readStream() : arrived.bytes;
  if (bytes.length > MOST_HELD_BYTES) throw tooLargeToApprove(MOST_HELD_BYTES);
  const { requireThere } = arrived;
  const subject = async (): Promise<string | undefined> => {
    if (!requireThere) return await subjectOf(row, name, caller);
    await requireThere();
    return undefined;
  };
  const uid = await subject();
  // A session is approved for one operation.
  const onceOnly = rule.onceOnly || subjects.length > 1;
  const held = heldRequest(arrived, { onceOnly, name, uid, bytes });
  const request: AnyRequest = row.media?.takes
    ? withContent(arrived.request, bytes)
    : arrived.request;
  const grant = gate.find(held);
  const isMarked = row.method === 'POST' && held.headers['idempotency-key'] !== undefined;
  const ask = async (): Promise<Grant> => {
    const grant = await gate.ask(held, waitMs, request.signal);
    if (waitMs > 0 && (await subject()) !== uid) throw madeAnew();
    return grant;
  };
  const note = (id: string): void => {
    context.state.approvalId = id;
  };
  // What an Idempotency-Key did already is told once more, and needs no approval.
  const isToldAgain = !grant && isMarked && row.effect?.kind !== 'unkeyed';
  const pass = isToldAgain
    ? askingPass(row, ask, note)
    : grantedPass(row, grant ?? (await noted(context, ask)), note);
  return { pass, request, bytes };
};

const withContent = (request: AnyRequest, bytes: Buffer): AnyRequest => ({
  ...request,
  incoming: {
    ...request.incoming,
    content: () => Readable.from(bytes.length > 0 ? [bytes] : []),
  },
});

/**
 * Has the operation refuse what another tenant has: nobody is asked about it, or learns
 * whether it is there.
 */
const ofAnother = (row: Route, { query, params }: AnyRequest, caller: Caller): Refusal => {
  refuseAdminFields(caller, (query ?? {}) as { readonly namespace?: string }, ['namespace']);
  return (
    row.params?.otherwise((params ?? {}) as Readonly<Record<string, string>>) ?? adminRequired()
  );
};

/** The approval that a refusal tells of is the audit's too. */
const noted = async (context: Context, ask: () => Promise<Grant>): Promise<Grant> => {
  try {
    return await ask();
  } catch (error) {
    const { approvalId } = refusalOf(error)?.detail ?? {};
    if (typeof approvalId === 'string') context.state.approvalId = approvalId;
    throw error;
  }
};

const grantedPass = (row: Route, grant: Grant, note: (id: string) => void): Pass => {
  note(grant.id);
  return {
    asks: false,
    key: grant.isForOnce && isRepeatable(row) ? `approval ${grant.id}` : undefined,
    use: (work) =>
      grant.use({ isRepeatable: isRepeatable(row), carryOut: work, hadNoEffect: wasRefused }),
    settle: () => grant.settle(),
  };
};

const askingPass = (row: Route, ask: () => Promise<Grant>, note: (id: string) => void): Pass => {
  let granted: Pass | undefined;
  return {
    asks: true,
    key: undefined,
    use: async (work) => {
      granted = grantedPass(row, await ask(), note);
      return await granted.use(work);
    },
    settle: async () => granted?.settle(),
  };
};

/** A repetition under the same mark, or of the same thing, is the same effect. */
export const isRepeatable = (row: Route): boolean =>
  row.effect !== undefined && row.effect.kind !== 'unkeyed';

const wasRefused = (error: unknown): boolean => {
  if (error instanceof AnsweredElsewhere) return error.hadNoEffect;
  const refusal = refusalOf(error);
  return refusal !== undefined && statusOf(refusal.code) < 500;
};

/** Returns what rules look at: the operation of the row, and others that the request comes to. */
const subjectsOf = (
  { row, request, caller, value }: Arrived,
  { operation, path, namespace }: ResolvedName,
): readonly PolicySubject[] => {
  const there: Caller = { ...caller, namespace };
  const body = { value: row.rules?.body?.(request) ?? value };
  const given = (request.params ?? {}) as Readonly<Record<string, string>>;
  return [
    { ...subjectOf(operation, {}, there), method: methodOf(row), path, body },
    ...(row.rules?.also?.(request) ?? []).map((also) => ({
      ...subjectOf(also, given, there),
      body,
    })),
  ];
};

const heldRequest = (
  { row, context, caller, api, value, unknown }: Arrived,
  {
    onceOnly,
    name: { operation, path, namespace },
    uid,
    bytes,
  }: {
    readonly onceOnly: boolean;
    readonly name: ResolvedName;
    readonly uid: string | undefined;
    readonly bytes: Buffer;
  },
): HeldRequest => {
  const query = sortedQuery(context.querystring);
  if (query.length > MOST_QUERY)
    throw invalidArgument('query', `must be at most ${MOST_QUERY} characters to be approved`);
  if (path.length > MOST_PATH)
    throw invalidArgument('path', `must be at most ${MOST_PATH} characters to be approved`);
  const headers = boundHeaders(context);
  const sessionId = headers['x-session-id'];
  if (sessionId !== undefined && !SESSION_ID.test(sessionId))
    throw invalidArgument('X-Session-Id', 'must be 1 to 128 letters, digits, dots, - and _');
  const { method } = row;
  const route = `${api} ${method} ${row.path}`;
  const ignored = ignoredIn(row, value, unknown);
  return {
    caller,
    sessionId,
    operation,
    method,
    path,
    namespace,
    query,
    headers,
    route,
    ignored: ignored.length > 0 ? ignored : undefined,
    body: bytes,
    onceOnly: onceOnly || row.rules?.onceOnly === true || caller.role === 'admin',
    summary: `${row.summary}: ${method} ${path}`.slice(0, 256),
    binding: hash(
      'sha256',
      JSON.stringify([
        caller.keyId,
        operation,
        method,
        path,
        namespace,
        uid ?? '',
        query,
        headers,
        // What an Idempotency-Key did is known by the path as it is spelled.
        headers['idempotency-key'] === undefined ? '' : withoutBase(context.path),
        hash('sha256', bytes, 'base64url'),
        route,
      ]),
      'base64url',
    ),
  };
};

const MOST_IGNORED = 16;
const LONGEST_FIELD = 128;

const ignoredIn = (
  { rules: { ignores = [] } = {} }: Route,
  value: unknown,
  unknown: readonly string[],
): readonly string[] =>
  [...ignores.filter((name) => hasField(value, name)), ...unknown]
    .slice(0, MOST_IGNORED)
    .map((name) => name.slice(0, LONGEST_FIELD));

const hasField = (value: unknown, name: string): boolean =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name);

const boundHeaders = ({ req }: Context): Readonly<Record<string, string>> =>
  Object.fromEntries(
    BOUND_HEADERS.flatMap((name) => {
      const value = req.headers[name];
      if (value === undefined) return [];
      const text = String(value);
      if (text.length > MOST_HEADER)
        throw invalidArgument(name, `must be at most ${MOST_HEADER} characters to be approved`);
      return [[name, text]];
    }),
  );

const sortedQuery = (text: string): string => {
  const query = new URLSearchParams(text);
  query.delete(WAIT_PARAMETER);
  query.sort();
  return query.toString();
};

const waitOf = (text: string): number => {
  const given = text.includes(WAIT_PARAMETER)
    ? new URLSearchParams(text).getAll(WAIT_PARAMETER)
    : [];
  const [seconds] = given;
  if (seconds === undefined) return 0;
  if (given.length > 1 || !/^[0-9]{1,3}$/.test(seconds) || Number(seconds) > MOST_WAIT_SECONDS)
    throw invalidArgument(WAIT_PARAMETER, `must be whole seconds from 0 to ${MOST_WAIT_SECONDS}`);
  return Number(seconds) * 1_000;
};
