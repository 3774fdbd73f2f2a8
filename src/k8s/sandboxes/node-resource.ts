import { cleaned } from './cleaned-message.ts';

export const NODES_PATH = '/api/v1/nodes';

/** As the mirror keeps a node. */
export interface StoredNode {
  readonly name: string;
  /** Why what runs on it can't be relied on. */
  readonly trouble: string | undefined;
  /** It is to be emptied. */
  readonly isLeaving: boolean;
}

interface NodeObject {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly spec?: {
    readonly unschedulable?: boolean;
    readonly taints?: readonly { readonly key: string }[];
  };
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
  };
}

/** By these the cluster's autoscaler and Karpenter say that they are about to drain the node. */
const DOOMED_TAINTS = ['ToBeDeletedByClusterAutoscaler', 'karpenter.sh/disrupted'];
const MOST_TEXT = 200;

export const storedNodeOf = (object: unknown): StoredNode => {
  const { metadata, spec, status } = object as NodeObject;
  const leaving = leavingOf({ metadata, spec });
  return {
    name: metadata.name,
    trouble: leaving ?? unreadinessOf({ metadata, status }),
    isLeaving: leaving !== undefined,
  };
};

/** The trouble of a node that nobody has seen: it is yet to come, or is gone. */
export const UNKNOWN_NODE = 'its node is not there';

const leavingOf = ({ metadata, spec }: NodeObject): string | undefined => {
  if (metadata.deletionTimestamp !== undefined) return 'its node is being removed';
  if (spec?.unschedulable === true) return 'its node is cordoned';
  if (spec?.taints?.some(({ key }) => DOOMED_TAINTS.includes(key)))
    return 'its node is about to be removed';
  return undefined;
};

const unreadinessOf = ({ metadata, status }: NodeObject): string | undefined => {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status === 'True') return undefined;
  const more = ready?.message
    ? ` (${cleaned(ready.message, metadata.name).slice(0, MOST_TEXT)})`
    : '';
  return `its node is not ready: ${ready?.reason ?? 'it has not reported yet'}${more}`;
};
