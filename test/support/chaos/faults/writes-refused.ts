import type { Cluster } from '../../../../local-cluster/control-plane/cluster.ts';
import type { Fault } from './fault.ts';
import { insist } from './insist.ts';

/** `right`: no permission to write. `places`: no room for more Pods. */
export type Refused = 'right' | 'places';

export interface Refusal {
  readonly namespace: string;
  readonly refused: Refused;
  readonly lastsMs: number;
}

const QUOTA = 'no-more-pods';

export class WritesRefused implements Fault {
  readonly kind: string;
  readonly victim: string;
  readonly others = 'wait';
  readonly lastsMs: number;
  readonly #cluster: Pick<Cluster, 'kubectl' | 'apply'>;
  readonly #refusal: Refusal;
  #bindings: object = {};

  constructor(cluster: Pick<Cluster, 'kubectl' | 'apply'>, refusal: Refusal) {
    [this.#cluster, this.#refusal] = [cluster, refusal];
    this.kind = refusal.refused === 'right' ? 'writes refused' : 'Pods refused';
    this.victim = `rights in ${refusal.namespace}`;
    this.lastsMs = refusal.lastsMs;
  }

  async begin(): Promise<void> {
    const { namespace, refused } = this.#refusal;
    if (refused === 'places') {
      const spec = { hard: { pods: '0' } };
      const quota = {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { name: QUOTA, namespace },
        spec,
      };
      await insist(() => this.#cluster.apply(quota));
      return;
    }
    const text = await this.#ask('get', 'rolebindings', '-n', namespace, '-o', 'json');
    const { items } = JSON.parse(text) as { readonly items: readonly Binding[] };
    this.#bindings = items.map(({ apiVersion, kind, metadata: { name }, roleRef, subjects }) => ({
      apiVersion,
      kind,
      metadata: { name, namespace },
      roleRef,
      subjects,
    }));
    await this.#ask('delete', 'rolebindings', '--all', '-n', namespace);
  }

  async end(): Promise<void> {
    const { namespace, refused } = this.#refusal;
    if (refused === 'places')
      await this.#ask('delete', 'resourcequota', QUOTA, '-n', namespace, '--ignore-not-found');
    else await insist(() => this.#cluster.apply(this.#bindings));
  }

  async #ask(...args: readonly string[]): Promise<string> {
    return await insist(() => this.#cluster.kubectl(...args));
  }
}

interface Binding {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly roleRef: object;
  readonly subjects: readonly object[];
}
