import { z } from 'zod';
import type { ClusterRecord } from '../../model/fleet/cluster.ts';
import { FORMAT } from '../api/resource.ts';
import { laterFormat, type Resource, type ResourceObject } from '../api/resource.ts';
import type { Seals } from '../api/seals.ts';

const moment = z.iso.datetime();

/**
 * Says which clusters may link to this manager; a worker's own object, since when it has cut off
 * its managers. Only daemons write it. Holds only the hash of a join token.
 */
export const WorkerClusterSpecSchema = z.object({
  format: z.int().min(1).max(FORMAT),
  joinHash: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  joinEndsAt: moment.optional(),
  publicKey: z.string().max(512).optional(),
  joinedAt: moment.optional(),
  cutOffAt: moment.optional(),
  /** Without a seal no cluster may link. */
  seal: z.string().max(64).optional(),
});
type WorkerClusterSpec = z.infer<typeof WorkerClusterSpecSchema>;

const KIND = 'WorkerCluster';

export const workerClusterResource = ({
  seals,
}: {
  readonly seals: Seals;
}): Resource<ClusterRecord> => ({
  kind: KIND,
  plural: 'workerclusters',
  place: ({ clusterId }) => ({ name: clusterId }),
  find: (name) => ({ name }),
  write: ({ clusterId, ...record }, before) => ({
    spec: seals.sealed(
      KIND,
      { name: clusterId },
      { uid: before?.metadata.uid, content: specOf(record) },
    ),
  }),
  read: (object) => {
    const spec = object.spec as WorkerClusterSpec;
    const verdict = seals.judge(object, spec);
    const isOurs = verdict === 'bound' || verdict === 'unbound';
    if (spec.format > FORMAT)
      return isOurs ? { kind: 'too-new', format: spec.format } : laterFormat(object, spec.format);
    // A new object lacks link keys, which are bound to the object's uid. Content that grants
    // nothing, such as a cut-off of managers, stays valid with another pepper.
    const lets = spec.publicKey !== undefined || spec.joinHash !== undefined;
    if (verdict === 'bound' || !lets || (verdict === 'unbound' && spec.publicKey === undefined))
      return { kind: 'record', record: recordOf(object) };
    return { kind: 'ignored' };
  },
});

const specOf = ({
  joinHash,
  joinEndsAt,
  publicKey,
  joinedAt,
  cutOffAt,
}: Omit<ClusterRecord, 'clusterId' | 'revision'>): WorkerClusterSpec => ({
  format: FORMAT,
  joinHash,
  joinEndsAt: joinEndsAt === undefined ? undefined : timestamp(joinEndsAt),
  publicKey,
  joinedAt: joinedAt === undefined ? undefined : timestamp(joinedAt),
  cutOffAt: cutOffAt === undefined ? undefined : timestamp(cutOffAt),
});

const recordOf = ({ metadata, spec }: ResourceObject): ClusterRecord => {
  const { joinHash, joinEndsAt, publicKey, joinedAt, cutOffAt } = spec as WorkerClusterSpec;
  return {
    clusterId: metadata.name,
    revision: metadata.resourceVersion,
    ...(joinHash === undefined ? {} : { joinHash }),
    ...(joinEndsAt === undefined ? {} : { joinEndsAt: Date.parse(joinEndsAt) }),
    ...(publicKey === undefined ? {} : { publicKey }),
    ...(joinedAt === undefined ? {} : { joinedAt: Date.parse(joinedAt) }),
    ...(cutOffAt === undefined ? {} : { cutOffAt: Date.parse(cutOffAt) }),
  };
};

const timestamp = (at: number): string => new Date(at).toISOString();
