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
  /** Undefined if names are never reused. Rejects if the resource is missing. */
  readonly subjectOf: (row: Route, of: ResolvedName, caller: Caller) => Promise<string | undefined>;
}

export interface Arrived {
  readonly row: Route;
  readonly context: Context;
  readonly request: AnyRequest;
  readonly caller: Caller;
  readonly bytes: Buffer;
  readonly value: unknown;
  readonly unknown: readonly string[];
  readonly api: 'REST' | 'compatible';
  /** Rejects if another cluster lacks the resource. */
  readonly requireThere: (() => Promise<void>) | undefined;
  readonly readStream: () => Promise<Buffer>;
}

/** Bounded by what an approver can review. */
const MOST_HELD_BYTES = 262_144;
const MOST_WAIT_SECONDS = 300;
const MOST_QUERY = 4_096;
const MOST_PATH = 2_048;
const MOST_HEADER = 512;

/** They change a request's meaning, so an approval binds their values. */
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

export const mayBeHeld = ({ gate }: GatingDeps, row: Route): boolean =>
  row.rules?.becomes !== undefined ||
  row.rules?.also !== undefined ||
  gate.rulesFor((row.rules?.as ?? row).operationId, methodOf(row)).length > 0;

const methodOf = ({ method, rules }: Route): Route['method'] => rules?.as?.method ?? method;

/**
 * Applies the approval policy before the request has any effect. Refuses with APPROVAL_REQUIRED or
 * APPROVAL_DENIED. Rules match the resolved operation and resource, so another spelling can't avoid
 * them.
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
  // A session's approval covers only one operation.
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
  // A replay of a stored answer needs no approval.
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

/** As the operation would, without revealing whether the resource exists. */
const ofAnother = (row: Route, { query, params }: AnyRequest, caller: Caller): Refusal => {
  refuseAdminFields(caller, (query ?? {}) as { readonly namespace?: string }, ['namespace']);
  return (
    row.params?.otherwise((params ?? {}) as Readonly<Record<string, string>>) ?? adminRequired()
  );
};

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

/** A repetition can't have a second effect. */
export const isRepeatable = (row: Route): boolean =>
  row.effect !== undefined && row.effect.kind !== 'unkeyed';

const wasRefused = (error: unknown): boolean => {
  if (error instanceof AnsweredElsewhere) return error.hadNoEffect;
  const refusal = refusalOf(error);
  if (refusal?.code === 'IDEMPOTENCY_IN_FLIGHT') return false;
  return refusal !== undefined && statusOf(refusal.code) < 500;
};

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
        // Stored answers are keyed by the path as the client spelled it.
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
