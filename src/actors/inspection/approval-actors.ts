import { approvalMachine } from '../../machines/approval/machine.ts';
import type { ApprovalContext } from '../../machines/approval/events.ts';
import type { ApprovalRecord } from '../../model/approvals/approval.ts';
import type { InspectedActor, ShownFields } from '../../model/inspection.ts';
import type { ApprovalHost } from '../approval/approval-host.ts';
import type { ApprovalMirror } from '../approval/approval-mirror.ts';
import { inspectBroken } from './inspect-broken.ts';
import type { InspectedActors } from './inspected-actors.ts';
import { fields, moment, tenant } from './shown-fields.ts';

export interface InspectedApprovalsDeps {
  readonly host: ApprovalHost;
  readonly mirror: ApprovalMirror;
}

export const inspectedApprovals = ({ host, mirror }: InspectedApprovalsDeps): InspectedActors => ({
  transitions: host.actors.transitions,
  keyOf: (text) => (mirror.get(text) ? text : undefined),
  ofPool: () => ({ keys: [] }),
  inspect: (id) => {
    const whole = host.whole(id);
    const since = host.actors.transitions.current(id)?.since ?? 0;
    if (whole) return inspectApproval(whole, since);
    return host.actors.rebuilds.isBroken(id)
      ? inspectBroken({ kind: 'approval', key: id, name: id, shardKey: id }, since)
      : undefined;
  },
  durable: async (id) => {
    const record = await mirror.whole(id);
    return record && shownApproval(record);
  },
  pendingOf: (id) => host.actors.pendingOf(id),
  rebuild: async (id) => {
    if (host.actors.pendingOf(id).length > 0) return 'busy';
    if (!host.whole(id) && !host.actors.rebuilds.isBroken(id)) return 'unknown';
    await host.actors.rebuild(id);
    return 'rebuilt';
  },
});

const inspectApproval = (
  { state, context }: { readonly state: string; readonly context: ApprovalContext },
  since: number,
): InspectedActor => {
  const { record, leads, askedAt, deadline } = context;
  return {
    kind: 'approval',
    key: record.id,
    name: record.id,
    shardKey: record.id,
    state,
    since,
    status: record.status,
    context: fields({ leading: leads, askedAt: moment(askedAt) }),
    deadlines:
      deadline === undefined
        ? []
        : [{ what: 'its time has passed, and its end is being handled', at: deadline }],
    why: [
      ...(leads ? [] : ['another replica handles its end; this replica follows']),
      ...descriptionOf(state),
    ],
    record: shownApproval(record),
  };
};

/** Omits the request's content and the binding. */
const shownApproval = (record: ApprovalRecord): ShownFields =>
  fields({
    id: record.id,
    revision: record.revision,
    owner: tenant(record.principal),
    keyId: record.principal.keyId,
    sessionId: record.sessionId,
    operation: record.operation,
    onceOnly: record.onceOnly,
    method: record.method,
    path: record.path,
    namespace: record.namespace,
    createdAt: moment(record.createdAt),
    expiresAt: moment(record.expiresAt),
    status: record.status,
    scope: record.scope,
    decidedBy: record.decidedBy,
    decidedAt: moment(record.decidedAt),
    reason: record.reason,
    use: record.use && { ...record.use },
  });

const descriptionOf = (path: string): readonly string[] => {
  const { description } = approvalMachine.getStateNodeById(`approval.${path}`);
  return description === undefined ? [] : [description];
};
