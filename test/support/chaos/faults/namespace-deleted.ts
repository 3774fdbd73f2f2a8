import type { Cluster } from '../../../../local-cluster/control-plane/cluster.ts';
import type { Fault } from './fault.ts';
import { insist } from './insist.ts';

export interface Tenancy {
  readonly namespace: string;
  renew(): Promise<void>;
  readonly lastsMs: number;
}

export class NamespaceDeleted implements Fault {
  readonly kind = 'namespace deleted';
  readonly victim: string;
  readonly others = 'lead';
  readonly lastsMs: number;
  readonly namespace: string;
  readonly #cluster: Pick<Cluster, 'kubectl'>;
  readonly #tenancy: Tenancy;

  constructor(cluster: Pick<Cluster, 'kubectl'>, tenancy: Tenancy) {
    [this.#cluster, this.#tenancy, this.namespace, this.lastsMs] = [
      cluster,
      tenancy,
      tenancy.namespace,
      tenancy.lastsMs,
    ];
    this.victim = `namespace ${this.namespace}`;
  }

  async begin(): Promise<void> {
    await insist(() =>
      this.#cluster.kubectl(
        'delete',
        'namespace',
        this.namespace,
        '--ignore-not-found',
        '--wait=false',
      ),
    );
  }

  async end(): Promise<void> {
    await insist(() =>
      this.#cluster.kubectl('wait', '--for=delete', `namespace/${this.namespace}`, '--timeout=45s'),
    );
    await insist(() => this.#tenancy.renew());
  }
}
