import type { ApprovalGate } from '../../src/services/approvals/approval-gate.ts';
import type { ConsoleSession } from '../../src/model/console-session.ts';
import { parseRule, type PolicyRule } from '../../src/model/approvals/policy.ts';
import { approvalParts, type ApprovalParts } from '../../src/services/approvals/approval-parts.ts';
import { heldSubject } from '../../src/http/corridor/held-subject.ts';
import type { Records } from '../../src/contracts/record-store.ts';
import type { ApprovalRecord } from '../../src/model/approvals/approval.ts';
import type { Caller } from '../../src/model/tenant.ts';
import type { AuditSink } from '../../src/contracts/audit.ts';
import { anEngine, type Engine } from '../support/harness/engine-operations.ts';
import { MemoryApprovals } from '../support/fakes/memory-approvals.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import type { HttpAnswer } from '../support/harness/http-client.ts';
import { aServer, type TestServer } from './a-server.ts';

export const TERMS = { pendingMs: 900_000, grantMs: 600_000, sessionMs: 8 * 3_600_000 };

export interface ApprovingServer {
  readonly server: TestServer;
  readonly operations: Engine;
  readonly records: MemoryApprovals;
  /** Of approvals. */
  readonly clock: TestClock;
  readonly parts: ApprovalParts;
  readonly gate: ApprovalGate;
  /** The sessions that there are, by the cookie's value. */
  readonly sessions: Map<string, ConsoleSession>;
  /** As the operator `olga`, unless another session is named. */
  readonly decide: (id: string, body: object, session?: string) => Promise<HttpAnswer>;
  readonly approve: (id: string, scope?: string) => Promise<HttpAnswer>;
  readonly stop: () => Promise<void>;
}

export const rulesOf = (...texts: readonly string[]): readonly PolicyRule[] =>
  texts.map((text) => {
    const rule = parseRule(text);
    if (typeof rule === 'string') throw new Error(rule);
    return rule;
  });

export const aSession = (part: Partial<ConsoleSession> = {}): ConsoleSession => ({
  kind: 'session',
  sessionId: 's1',
  operator: 'olga',
  role: 'operator',
  authenticatedAt: Date.UTC(2026, 0, 1),
  ...part,
});

/** A server over operations in memory that holds what the rules say. Several may share records. */
export const anApprovingServer = async (
  rules: readonly string[],
  {
    operations = anEngine(),
    records = new MemoryApprovals(),
    store = records,
    clock = new TestClock(),
    audit,
    severalDecide = () => true,
    ofFleet = {},
  }: {
    /** For a manager, or a worker. */
    readonly ofFleet?: Pick<
      Parameters<typeof aServer>[0] & object,
      'clusterId' | 'fleet' | 'clients'
    >;
    readonly audit?: AuditSink;
    readonly severalDecide?: () => boolean;
    readonly operations?: Engine;
    readonly records?: MemoryApprovals;
    /** In place of records in memory. */
    readonly store?: Records<ApprovalRecord>;
    readonly clock?: TestClock;
  } = {},
): Promise<ApprovingServer> => {
  const parts = approvalParts({
    approvals: store,
    clock,
    log: quietLog,
    pepper: Buffer.alloc(32, 7),
    rules: rulesOf(...rules),
    terms: TERMS,
    severalDecide,
  });
  await parts.mirror.start();
  Object.assign(operations, parts.operations);
  const sessions = new Map([['olga', aSession()]]);
  const server = await aServer({
    audit,
    ...ofFleet,
    operations,
    gating: { gate: parts.gate, subjectOf: heldSubject(operations) },
    sessionOf: ({ headers }) =>
      sessions.get(/__Host-sandpool-session=(\w+)/.exec(headers.cookie ?? '')?.[1] ?? ''),
  });
  const decide: ApprovingServer['decide'] = (id, body, session = 'olga') =>
    server.anyone.post(`/approvals/${id}/decision`, body, {
      headers: { Cookie: `__Host-sandpool-session=${session}` },
    });
  return {
    server,
    operations,
    records,
    clock,
    parts,
    gate: parts.gate,
    sessions,
    decide,
    approve: (id, scope = 'once') => decide(id, { decision: 'approve', scope }),
    stop: () => server.stop(),
  };
};

/** Deletes the tenant's pool, and makes another one of its name. */
export const madeAnew = async (operations: Engine, name: string): Promise<void> => {
  const owner = operations.pools.get(`team-blue/${name}`)?.owner;
  if (!owner) throw new Error('there is no pool');
  const caller: Caller = { ...owner, role: 'user', keyId: 'k' };
  await operations.deletePool(caller, name, { force: true });
  await eventually(() => operations.pools.size === 0, 'it is gone');
  await operations.createPool(caller, {
    name,
    source: { templateName: 'default' },
    labels: {},
    annotations: {},
  });
};

/** The id that a refusal tells; fails where it is none. */
export const approvalIdOf = ({ status, json, text }: HttpAnswer): string => {
  const id = json.detail?.['approvalId'];
  if (status !== 403 || json.errorCode !== 'APPROVAL_REQUIRED' || typeof id !== 'string')
    throw new Error(`${status} ${text}`);
  return id;
};
