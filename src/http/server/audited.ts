import type { AuditSink } from '../../contracts/audit.ts';
import { blankApiKeys } from '../../model/api-key-text.ts';
import type { Context, RequestState } from './context.ts';
import type { Note } from './notes.ts';

const WRITES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/**
 * Takes down each request that may change something and found its row: also one that was refused,
 * or whose client left. What an admin reads is counted: it shows what is other tenants'.
 */
export const audited =
  (audit: AuditSink): Note =>
  (context: Context & { readonly params?: Readonly<Record<string, string>> }) => {
    const { requestId, operation, caller, asked, answered, errorCode, isHeld } = context.state;
    if (operation === undefined) return;
    const params = textsOf(context.params ?? {});
    if (!WRITES.has(context.method) && !isHeld) {
      if (caller?.role === 'admin')
        audit.count({
          kind: 'read',
          caller,
          operation,
          ...(Object.keys(params).length > 0 ? { params } : {}),
        });
      return;
    }
    const target = {
      ...targetOf(asked, typeof answered === 'string' ? JSON.parse(answered) : answered),
      ...approvalOf(context.state),
    };
    audit.note({
      requestId,
      operation,
      caller,
      status: context.status,
      errorCode,
      ...(Object.keys(params).length > 0 ? { params } : {}),
      ...(Object.keys(target).length > 0 ? { target } : {}),
      ...(context.res.getHeader('Idempotency-Replayed') === undefined ? {} : { replayed: true }),
    });
  };

/** Names the approval that a request waits for or had, and who decides one. */
const approvalOf = ({ approvalId, session, operation, asked }: RequestState) => {
  const decision = operation === 'decideApproval' && isObject(asked) ? asked : {};
  return textsOf({
    ...(approvalId === undefined ? {} : { approvalId }),
    ...(session ? { operator: session.operator, sessionId: session.sessionId } : {}),
    ...(typeof decision['decision'] === 'string' ? { decision: decision['decision'] } : {}),
    ...(typeof decision['scope'] === 'string' ? { scope: decision['scope'] } : {}),
  });
};

/**
 * Picks what names the thing that a request is about, of its body and its answer; each field is a
 * name or an id, and no secret.
 */
const targetOf = (body: unknown, answer: unknown): Readonly<Record<string, string>> => {
  const named = { ...namesOf(body), ...namesOf(answer) };
  for (const inner of isObject(answer) ? Object.values(answer) : [])
    Object.assign(named, namesOf(inner));
  return textsOf(named);
};

const NAMES = ['name', 'poolName', 'sandboxId', 'keyId', 'team', 'user', 'role'] as const;
const LONGEST = 256;

const namesOf = (value: unknown): Record<string, unknown> =>
  isObject(value)
    ? Object.fromEntries(
        NAMES.flatMap((name) => (typeof value[name] === 'string' ? [[name, value[name]]] : [])),
      )
    : {};

const textsOf = (values: Readonly<Record<string, unknown>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      blankApiKeys(String(value).slice(0, LONGEST)),
    ]),
  );

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
