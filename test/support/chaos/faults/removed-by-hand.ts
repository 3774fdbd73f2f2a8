import type { Dice } from '../../builders/hostile-values.ts';
import type { Cluster } from '../../../../local-cluster/control-plane/cluster.ts';
import { idOfPodName, podNameOf } from '../../../../src/model/identifiers.ts';
import type { Fault } from './fault.ts';
import { insist } from './insist.ts';

export interface Removal {
  readonly resource: 'pods' | 'sandboxes.sandpool.dev';
  readonly namespace: string;
  readonly dice: Dice;
}

const MOST_REMOVED = 3;

/** Deletes Pods or records in any state. */
export class RemovedByHand implements Fault {
  readonly kind: string;
  readonly others = 'lead';
  readonly lastsMs = 0;
  readonly victim: string;
  readonly removes: string[] = [];
  readonly #cluster: Pick<Cluster, 'kubectl'>;
  readonly #removal: Removal;

  constructor(cluster: Pick<Cluster, 'kubectl'>, removal: Removal) {
    this.#cluster = cluster;
    this.#removal = removal;
    this.kind = removal.resource === 'pods' ? 'delete Pods' : 'delete records';
    this.victim = `${removal.resource} of ${removal.namespace}`;
  }

  async begin(): Promise<void> {
    const { resource, namespace, dice } = this.#removal;
    const listed = await insist(() =>
      this.#cluster.kubectl(
        'get',
        resource,
        '-n',
        namespace,
        '-o',
        'jsonpath={.items[*].metadata.name}',
      ),
    );
    const there = listed.split(' ').flatMap((name) => idOfPodName(name) ?? []);
    for (let left = 1 + dice.below(MOST_REMOVED); left > 0 && there.length > 0; left -= 1)
      this.removes.push(...there.splice(dice.below(there.length), 1));
    if (this.removes.length === 0) return;
    const names = this.removes.map(podNameOf);
    await insist(() =>
      this.#cluster.kubectl(
        'delete',
        resource,
        '-n',
        namespace,
        '--ignore-not-found',
        '--wait=false',
        '--grace-period=0',
        '--force',
        ...names,
      ),
    );
  }

  async end(): Promise<void> {}
}
