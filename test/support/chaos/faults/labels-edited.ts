import { idOfPodName } from '../../../../src/model/identifiers.ts';
import { POOL_LABEL } from '../../../../src/k8s/sandboxes/sandbox-resource.ts';
import type { Cluster } from '../../../../local-cluster/control-plane/cluster.ts';
import type { Dice } from '../../builders/hostile-values.ts';
import type { Fault } from './fault.ts';
import { insist } from './insist.ts';

export interface Edit {
  readonly resource: 'pods' | 'sandboxes.sandpool.dev';
  readonly namespace: string;
  readonly dice: Dice;
  readonly lastsMs: number;
}

const MOST_EDITED = 3;

/** The daemon finds Pods and records by these labels. */
export class LabelsEdited implements Fault {
  readonly kind: string;
  readonly victim: string;
  readonly others = 'lead';
  readonly lastsMs: number;
  readonly edits: string[] = [];
  readonly #cluster: Pick<Cluster, 'kubectl'>;
  readonly #edit: Edit;
  readonly #labels = new Map<string, string>();

  constructor(cluster: Pick<Cluster, 'kubectl'>, edit: Edit) {
    [this.#cluster, this.#edit, this.lastsMs] = [cluster, edit, edit.lastsMs];
    this.kind = edit.resource === 'pods' ? 'labels of Pods' : 'labels of records';
    this.victim = `${edit.resource} of ${edit.namespace}`;
  }

  async begin(): Promise<void> {
    const { resource, namespace, dice } = this.#edit;
    const text = await insist(() =>
      this.#cluster.kubectl('get', resource, '-n', namespace, '-l', POOL_LABEL, '-o', 'json'),
    );
    const { items } = JSON.parse(text) as {
      readonly items: readonly { readonly metadata: Meta }[];
    };
    const there = items
      .map(({ metadata }) => metadata)
      .filter(({ deletionTimestamp }) => deletionTimestamp === undefined);
    for (let left = 1 + dice.below(MOST_EDITED); left > 0 && there.length > 0; left -= 1) {
      for (const { name, labels } of there.splice(dice.below(there.length), 1)) {
        this.#labels.set(name, labels[POOL_LABEL] ?? '');
        const id = idOfPodName(name);
        if (id !== undefined) this.edits.push(id);
      }
    }
    for (const name of this.#labels.keys()) await this.#label(name, `${POOL_LABEL}-`);
  }

  async end(): Promise<void> {
    for (const [name, value] of this.#labels) await this.#label(name, `${POOL_LABEL}=${value}`);
  }

  async #label(name: string, change: string): Promise<void> {
    const { resource, namespace } = this.#edit;
    const label = async (): Promise<void> => {
      await this.#cluster.kubectl('label', resource, name, '-n', namespace, '--overwrite', change);
    };
    await insist(() =>
      label().catch((error: unknown) => {
        if (!String(error).includes('NotFound')) throw error;
      }),
    );
  }
}

interface Meta {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly deletionTimestamp?: string;
}
