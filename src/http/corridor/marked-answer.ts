import { ApprovalUsed } from '../../model/approvals/approval-refusals.ts';
import { managersFingerprint } from '../../model/request-fingerprint.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import type { AskedByManager } from '../../actors/request/idempotent-request.ts';
import type { Context } from '../reply/context.ts';
import type { RequestLimits } from './request-limits.ts';
import { written } from './answer-writing.ts';
import { PassedBody } from '../../fleet/routing/passed-answer.ts';
import { withoutBase } from '../reply/bases.ts';
import { passAway, type Pass, type WorkAway } from './pass.ts';
import {
  answerOnce,
  fingerprintOf,
  seedOf,
  type IdempotencyDeps,
  type WrittenAnswer,
} from './idempotency.ts';
import type { Answer, AnyRequest, Route } from './route.ts';

export interface CarryOutDeps extends IdempotencyDeps {
  readonly limits: RequestLimits;
}

interface Marked {
  readonly context: Context;
  readonly request: AnyRequest;
  readonly caller: Caller;
  /** The client's Idempotency-Key, or the name of the grant, or the key that a manager made. */
  readonly key: string;
  readonly byManager?: AskedByManager | undefined;
  readonly bytes: Buffer;
  readonly pass: Pass;
  /** A manager says that what it had approved may have been done. */
  readonly mayBeDone?: boolean | undefined;
  /** Called once it is open, and before anything is done. What it throws refuses the request. */
  readonly opened?: (() => Promise<void>) | undefined;
}

/** Carries a request out once under its key, also where repetitions come to other replicas. */
export const answerMarked = async (
  row: Route,
  deps: CarryOutDeps,
  { opened, byManager, mayBeDone: isSaid = false, ...marked }: Marked,
): Promise<WrittenAnswer> => {
  const { context, request, caller, key, bytes, pass } = marked;
  const known = fingerprintOf(caller, {
    method: row.method,
    path: markedPathOf(marked),
    key,
    body: bytes,
  });
  const mark = byManager ? managersFingerprint(known.key) : known;
  const { earlier } = row;
  const credential = String(context.req.headers['service-api-key']);
  return await answerOnce(deps, {
    mark,
    byManager,
    caller,
    credential,
    opensItself: row.opensItself === true,
    earlier:
      earlier &&
      (async (instance) => {
        const found = await earlier(request, mark, instance);
        return found && written(found);
      }),
    pendingOutcome: () => row.pendingOutcome?.(mark),
    carryOut: async (opening) => {
      // One that only asks must find what an earlier request did first.
      if ((pass.asks || opened) && row.opensItself === true) await opening.open();
      await opened?.();
      const work = (mayBeDone: boolean): Promise<Answer> | Answer => {
        opening.mayBeDone = mayBeDone;
        const seed = (): Buffer => seedOf(mark, credential);
        return carryOut(row, deps, { ...request, mark, opening, seed });
      };
      try {
        return written(await pass.use(({ mayBeDone }) => work(mayBeDone || isSaid)));
      } catch (error) {
        // What used the grant may have kept its answer.
        if (error instanceof ApprovalUsed && !opening.isOpen) await opening.open();
        throw error;
      }
    },
    settle: () => pass.settle(),
  });
};

/**
 * Has another cluster carry out what a rule holds, once under its key: repetitions get the first
 * answer, which is kept here, and need no approval.
 */
export const answerHeldAway = async (
  row: Pick<Route, 'method'>,
  deps: IdempotencyDeps,
  { context, request, caller, key, bytes, pass }: Marked,
  work: WorkAway,
): Promise<Answer> => {
  const path = markedPathOf({ context, request, key, pass });
  const mark = fingerprintOf(caller, {
    method: row.method,
    path: `${path} elsewhere`, // it may be this cluster's to carry out, under the key itself
    key,
    body: bytes,
  });
  let given: Answer | undefined;
  const marked = await answerOnce(deps, {
    mark,
    caller,
    credential: String(context.req.headers['service-api-key']),
    opensItself: false,
    earlier: undefined,
    pendingOutcome: () => undefined,
    carryOut: async () => {
      given = await passAway(pass, work);
      return given.body instanceof PassedBody ? NOT_KEPT : { ...written(given), secret: true };
    },
    settle: async () => {
      if (!given || given.status < 400) await pass.settle();
    },
  });
  const { status, headers, text } = marked;
  return given ?? { status, headers, body: JSON.parse(text) as object };
};

const NOT_KEPT: WrittenAnswer = { status: 500, headers: {}, text: '', secret: false };

/** One of the places that the gate has, unless the operation mostly waits. */
export const carryOut = (
  row: Route,
  { limits: { gate } }: Pick<CarryOutDeps, 'limits'>,
  request: AnyRequest,
): Promise<Answer> | Answer =>
  row.waits === true || row.waits?.(request) || !request.caller
    ? row.handle(request)
    : gate.pass({ operation: row.operationId, tenant: tenantKey(request.caller) }, () =>
        row.handle(request),
      );

/**
 * The path by which a request is known under its key: none where that names a grant, which has one
 * effect, however it is asked for.
 */
export const markedPathOf = ({
  context,
  request,
  key,
  pass,
}: Pick<Marked, 'context' | 'request' | 'key'> & {
  readonly pass: Pick<Pass, 'key'>;
}): string => (key === pass.key ? '' : withoutBase(context.path) + elsewhere(request.query));

/** Gives the one parameter of a query that says what a path names. */
const elsewhere = (query: unknown): string => {
  const { namespace } = (query ?? {}) as { readonly namespace?: string };
  return namespace === undefined ? '' : `?namespace=${namespace}`;
};
