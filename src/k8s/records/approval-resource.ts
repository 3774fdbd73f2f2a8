import { z } from 'zod';
import {
  APPROVAL_SCOPES,
  APPROVAL_STATUSES,
  type ApprovalRecord,
} from '../../model/approvals/approval.ts';
import { laterFormat, type Resource, type ResourceObject } from '../api/resource.ts';
import { FORMAT } from '../api/resource.ts';
import type { ResourceTerms } from './owned-resource.ts';

const text = (most: number) => z.string().max(most);
const moment = z.iso.datetime();

/** Only daemons write it. `content` is sealed, and removed at the end. */
export const ApprovalSpecSchema = z.object({
  format: z.int().min(1).max(FORMAT),
  principal: z.object({
    team: text(63),
    user: text(63),
    keyId: text(64),
    role: z.enum(['user', 'admin']),
    persons: z.array(text(63)).max(64),
  }),
  sessionId: text(128).optional(),
  operation: text(128),
  onceOnly: z.boolean(),
  method: text(16),
  path: text(4_096),
  namespace: text(63),
  query: text(8_192),
  route: text(512),
  ignored: z.array(text(128)).max(16).optional(),
  headers: z.record(z.string(), text(1_024)),
  summary: text(512),
  binding: text(64),
  content: text(400_000).optional(),
  createdAt: moment,
  expiresAt: moment,
  status: z.enum(APPROVAL_STATUSES),
  scope: z.enum(APPROVAL_SCOPES).optional(),
  decidedBy: text(1_024).optional(),
  decidedAt: moment.optional(),
  reason: text(2_048).optional(),
  use: z
    .object({ at: moment, attempt: z.int().min(1).max(1_000_000), settled: z.boolean() })
    .optional(),
  /** Without a seal nothing is granted. */
  seal: text(64).optional(),
});
type ApprovalSpec = z.infer<typeof ApprovalSpecSchema>;

const KIND = 'Approval';

/** In the namespace of the caller. Keys are `namespace/id`. */
export const approvalResource = ({
  seals,
  teamOf,
}: Pick<ResourceTerms, 'seals' | 'teamOf'>): Resource<ApprovalRecord> => ({
  kind: KIND,
  plural: 'approvals',
  place: ({ id, principal: { namespace } }) => ({ namespace, name: id }),
  find: (key) => ({
    namespace: key.slice(0, key.indexOf('/')),
    name: key.slice(key.indexOf('/') + 1),
  }),
  write: (record, before) => ({
    spec: seals.sealed(
      KIND,
      { namespace: record.principal.namespace, name: record.id },
      { uid: before?.metadata.uid, content: specOf(record) },
    ),
  }),
  read: (object) => {
    if (teamOf(object.metadata.namespace ?? '') === undefined) return { kind: 'ignored' };
    const spec = object.spec as ApprovalSpec;
    const verdict = seals.judge(object, spec);
    const isOurs = verdict === 'bound' || verdict === 'unbound';
    if (spec.format > FORMAT)
      return isOurs ? { kind: 'too-new', format: spec.format } : laterFormat(object, spec.format);
    // A grant must be bound to the object's uid, so it starts as pending.
    if (verdict === 'bound' || (verdict === 'unbound' && spec.status === 'pending'))
      return { kind: 'record', record: recordOf(object) };
    return { kind: 'ignored' };
  },
});

const specOf = (record: Omit<ApprovalRecord, 'revision'>): ApprovalSpec => {
  const {
    id: _id,
    principal,
    use,
    createdAt,
    expiresAt,
    decidedAt,
    ignored,
    ...rest
  } = {
    revision: undefined,
    ...record,
  };
  const { revision: _revision, ...said } = rest;
  const { namespace: _namespace, persons, ...who } = principal;
  return {
    format: FORMAT,
    ...said,
    ignored: ignored ? [...ignored] : undefined,
    headers: { ...said.headers },
    principal: { ...who, persons: [...persons] },
    createdAt: timestamp(createdAt),
    expiresAt: timestamp(expiresAt),
    decidedAt: decidedAt === undefined ? undefined : timestamp(decidedAt),
    use: use ? { ...use, at: timestamp(use.at) } : undefined,
  };
};

const recordOf = ({ metadata, spec: given }: ResourceObject): ApprovalRecord => {
  const {
    format: _format,
    seal: _seal,
    principal,
    use,
    createdAt,
    expiresAt,
    decidedAt,
    sessionId,
    content,
    scope,
    decidedBy,
    reason,
    ignored,
    ...spec
  } = given as ApprovalSpec;
  return {
    ...spec,
    id: metadata.name,
    revision: metadata.resourceVersion,
    principal: { ...principal, namespace: metadata.namespace ?? '' },
    createdAt: Date.parse(createdAt),
    expiresAt: Date.parse(expiresAt),
    ...(decidedAt === undefined ? {} : { decidedAt: Date.parse(decidedAt) }),
    ...(use ? { use: { ...use, at: Date.parse(use.at) } } : {}),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(content === undefined ? {} : { content }),
    ...(scope === undefined ? {} : { scope }),
    ...(decidedBy === undefined ? {} : { decidedBy }),
    ...(reason === undefined ? {} : { reason }),
    ...(ignored ? { ignored } : {}),
  };
};

const timestamp = (at: number): string => new Date(at).toISOString();
