import type { Cluster } from '../../control-plane/cluster.ts';
import { podNameOf } from '../../../../src/model/identifiers.ts';
import type { Fault } from './fault.ts';

export interface Removal {
  /** As kubectl names it. */
  readonly resource: 'pods' | 'sandboxes.sandpool.dev';
  readonly namespace: string;
  readonly ids: readonly string[];
}

/** Somebody deletes Pods, or records, whatever state they are in. */
export class RemovedByHand implements Fault {
  readonly kind: string;
  readonly victim: string;
  readonly others = 'lead';
  readonly lastsMs = 0;
  readonly removes: readonly string[];
  readonly #cluster: Cluster;
  readonly #removal: Removal;

  constructor(cluster: Cluster, removal: Removal) {
    this.#cluster = cluster;
    this.#removal = removal;
    this.kind = removal.resource === 'pods' ? 'delete Pods' : 'delete records';
    this.removes = removal.ids;
    this.victim = removal.ids.join(' ');
  }

  async begin(): Promise<void> {
    const { resource, namespace, ids } = this.#removal;
    await this.#cluster.kubectl('delete', resource, '-n', namespace, '--ignore-not-found', '--wait=false', '--grace-period=0', '--force', ...ids.map(podNameOf));
  }

  async end(): Promise<void> {}
}
