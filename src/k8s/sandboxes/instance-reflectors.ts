import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { MirrorReport } from '../../contracts/mirror-report.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import { Mirror } from '../../model/mirror/mirror.ts';
import { SharedReads } from '../../lib/shared-reads.ts';
import type { ApiServer } from '../api/api-calls.ts';
import type { InstanceMirror } from './instance-mirror.ts';
import { PodReflectors } from './pods/pod-reflectors.ts';
import { measureMirror } from '../api/mirror-metrics.ts';
import { Reflector } from '../api/reflector.ts';
import { type LaterSandbox, laterSandboxOf } from './later-sandbox.ts';
import { sandboxesPath, storedSandboxOf, type StoredSandbox } from './sandbox-resource.ts';
import type { Seals } from '../api/seals.ts';
import { cleaned } from './cleaned-message.ts';

const MOST_VALUES = 20_000;

export interface InstanceReflectorsDeps {
  readonly api: ApiServer;
  readonly mirror: InstanceMirror;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly seals: Seals;
  readonly teamOf: (namespace: string) => string | undefined;
}

const CATCH_UP_MS = 5_000;

export class InstanceReflectors {
  readonly #deps: InstanceReflectorsDeps;
  readonly #sandboxes: Reflector<StoredSandbox | LaterSandbox>;
  readonly #pods: PodReflectors;
  readonly #nodes: Reflector<StoredNode>;
  /** Shared by shards that are taken over together. */
  readonly #catchUps: SharedReads<void>;
  readonly #nodeLooks: SharedReads<void>;

  constructor(deps: InstanceReflectorsDeps) {
    this.#deps = deps;
    const { api, clock, log, mirror, metrics } = deps;
    const reflect = { api: api.lane('background'), watches: api.lane('watches'), log };
    const share = sharedValues();
    this.#sandboxes = new Reflector({
      ...reflect,
      path: sandboxesPath(),
      mirror: mirror.sandboxes,
      trim: (object) => {
        const {
          metadata: { namespace },
        } = object as { readonly metadata: { readonly namespace: string } };
        return deps.teamOf(namespace) === undefined
          ? undefined
          : (laterSandboxOf(object, deps.seals) ?? storedSandboxOf(object, share));
      },
    });
    this.#pods = new PodReflectors({
      ...deps,
      mirrors: mirror.pods,
      inUse: () => mirror.namespaces(),
      changed: (namespace) => {
        mirror.namespaceChanged(namespace);
      },
    });
    this.#nodes = new Reflector({
      ...reflect,
      path: NODES_PATH,
      mirror: new Mirror({
        report: ({ record }) => {
          mirror.nodeChanged(record.name);
        },
      }),
      trim: storedNodeOf,
    });
    measureMirror(metrics, 'sandboxes', () => [this.#sandboxes.report()]);
    measureMirror(metrics, 'pods', () => this.#pods.reports());
    measureMirror(metrics, 'nodes', () => [this.#nodes.report()]);
    this.#nodeLooks = new SharedReads({
      clock,
      read: (name) => this.#nodes.look(name, `${NODES_PATH}/${encodeURIComponent(name)}`),
    });
    this.#catchUps = new SharedReads({
      clock,
      read: async () => {
        await Promise.all([
          this.#sandboxes.caughtUp(CATCH_UP_MS),
          this.#pods.caughtUp(CATCH_UP_MS),
        ]);
        // A new record may be the first of its namespace, whose Pods are listed only now.
        await this.#pods.listed(CATCH_UP_MS);
      },
    });
  }

  async start(): Promise<void> {
    // An instance on an unknown node would be unavailable.
    this.#nodes.start();
    await this.#nodes.synced();
    this.#pods.start();
    this.#sandboxes.start();
    await this.#sandboxes.synced();
    await this.#pods.settled();
    await this.#deps.mirror.begin();
  }

  /** Resolves once everything written before this call has been reported. */
  async caughtUp(): Promise<void> {
    await this.#catchUps.read('');
  }

  followPods(namespace: string): void {
    this.#pods.follow(namespace);
  }

  podsTrouble(namespace: string): string | undefined {
    return this.#pods.trouble(namespace);
  }

  async podsReached(namespace: string, revision: string, withinMs: number): Promise<boolean> {
    return await this.#pods.reached(namespace, revision, withinMs);
  }

  /** Reads a node that the mirror shows in trouble; at most once in 250 ms. */
  async lookAtNode(name: string): Promise<void> {
    if (this.nodeTrouble(name) !== undefined) await this.#nodeLooks.read(name);
  }

  problems(): readonly string[] {
    return [
      ['sandboxes', this.#sandboxes.stale],
      ['Pods', this.#pods.stale],
      ['nodes', this.#nodes.stale],
    ].flatMap(([kind, stale]) =>
      stale === undefined ? [] : [`the mirror of ${kind} is stale: ${stale}`],
    );
  }

  warnings(): readonly string[] {
    return this.#pods.warnings();
  }

  reports(): readonly MirrorReport[] {
    return [this.#sandboxes.report(), ...this.#pods.reports(), this.#nodes.report()];
  }

  nodeTrouble(name: string): string | undefined {
    const node = this.#nodes.get(name);
    return node ? node.trouble : UNKNOWN_NODE;
  }

  nodeLeaves(name: string): boolean {
    return this.#nodes.get(name)?.isLeaving === true;
  }

  async stop(): Promise<void> {
    await Promise.all([this.#sandboxes.stop(), this.#pods.stop(), this.#nodes.stop()]);
  }
}

/** Bounded. Stores equal values once, since thousands of records of a pool have the same. */
const sharedValues = (): (<T>(value: T) => T) => {
  const values = new Map<string, unknown>();
  return <T>(value: T): T => {
    const key = typeof value === 'string' ? value : JSON.stringify(value);
    const known = values.get(key);
    if (known !== undefined) return known as T; // the same text, so the same shape
    if (values.size >= MOST_VALUES) values.clear();
    values.set(key, value);
    return value;
  };
};

const NODES_PATH = '/api/v1/nodes';

interface StoredNode {
  readonly name: string;
  readonly trouble: string | undefined;
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

/** The cluster autoscaler and Karpenter set these before they drain a node. */
const DOOMED_TAINTS = ['ToBeDeletedByClusterAutoscaler', 'karpenter.sh/disrupted'];
const MOST_TEXT = 200;

const storedNodeOf = (object: unknown): StoredNode => {
  const { metadata, spec, status } = object as NodeObject;
  const leaving = leavingOf({ metadata, spec });
  return {
    name: metadata.name,
    trouble: leaving ?? unreadinessOf({ metadata, status }),
    isLeaving: leaving !== undefined,
  };
};

/** The trouble of an unknown node: it is new, or gone. */
const UNKNOWN_NODE = 'its node does not exist';

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
