import { ApprovalUsed } from '../../model/approvals/approval-refusals.ts';
import { managersFingerprint } from '../../model/request-fingerprint.ts';
import type { Caller } from '../../model/tenant.ts';
import type { AskedByManager } from '../../actors/request/idempotent-request.ts';
import type { Context } from '../reply/context.ts';
import { withoutBase } from '../limits/request-head.ts';
import type { Pass } from './pass.ts';
import {
  answerOnce,
  fingerprintOf,
  seedOf,
  written,
  type IdempotencyDeps,
  type WrittenAnswer,
} from './idempotency.ts';
import type { Answer, AnyRequest, Route } from './route.ts';

export interface Marked {
  readonly context: Context;
  readonly request: AnyRequest;
  readonly caller: Caller;
  /** The client's Idempotency-Key, the name of the grant, or a key that a manager generated. */
  readonly key: string;
  readonly byManager?: AskedByManager;
  readonly bytes: Buffer;
  readonly pass: Pass;
  /** A manager reports that an earlier attempt under its key may have succeeded. */
  readonly mayBeDone?: boolean;
  /**
   * Another cluster may carry out the effect, so the local row neither claims the key nor looks for
   * a result.
   */
  readonly isElsewhere: boolean;
  /** Runs the later stages, and returns their answer. */
  readonly perform: (request: AnyRequest) => Promise<Answer> | Answer;
}

/** Runs a request once under its key, even if repetitions reach other replicas. */
export const answerMarked = async (
  row: Route,
  deps: IdempotencyDeps,
  { isElsewhere, byManager, mayBeDone: isSaid = false, ...marked }: Marked,
): Promise<WrittenAnswer> => {
  const { context, request, caller, key, bytes, pass, perform } = marked;
  const known = fingerprintOf(caller, {
    method: row.method,
    path: markedPathOf(marked),
    key,
    body: bytes,
  });
  const mark = byManager ? managersFingerprint(known.key) : known;
  const effect = isElsewhere ? undefined : row.effect;
  const opensItself = effect?.kind === 'opened';
  const credential = String(context.req.headers['service-api-key']);
  return await answerOnce(deps, {
    mark,
    byManager,
    isElsewhere,
    caller,
    credential,
    opensItself,
    earlier:
      effect?.kind === 'recorded'
        ? async (instance) => {
            const found = await effect.find(request, mark, instance);
            return found && written(found);
          }
        : undefined,
    pendingOutcome: () => (opensItself ? effect.pending(mark) : undefined),
    carryOut: async (opening) => {
      // Find an earlier attempt before asking for approval.
      if (pass.asks && opensItself) await opening.open();
      const work = (mayBeDone: boolean): Promise<Answer> | Answer => {
        opening.mayBeDone = mayBeDone;
        const seed = (): Buffer => seedOf(mark, credential);
        return perform({ ...request, keyed: { mark, opening, seed } });
      };
      try {
        const answer = written(await pass.use(({ mayBeDone }) => work(mayBeDone || isSaid)));
        // another cluster's answer may contain a secret
        return isElsewhere ? { ...answer, secret: true } : answer;
      } catch (error) {
        // The request that used the grant may have stored its answer.
        if (error instanceof ApprovalUsed && !opening.isOpen) await opening.open();
        throw error;
      }
    },
    settle: () => pass.settle(),
  });
};

/**
 * The path in the request's fingerprint. Empty for a grant, which has one effect under any path.
 */
const markedPathOf = ({
  context,
  request,
  key,
  pass,
}: Pick<Marked, 'context' | 'request' | 'key' | 'pass'>): string =>
  key === pass.key ? '' : withoutBase(context.path) + elsewhere(request.query);

/** The `namespace` parameter. No other parameter changes the resource of a path. */
const elsewhere = (query: unknown): string => {
  const { namespace } = (query ?? {}) as { readonly namespace?: string };
  return namespace === undefined ? '' : `?namespace=${namespace}`;
};
