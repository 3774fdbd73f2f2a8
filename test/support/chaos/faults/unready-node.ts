import { setTimeout } from 'node:timers/promises';
import type { Cluster } from '../../../../local-cluster/control-plane/cluster.ts';
import { STAGE_LABEL } from '../../../../local-cluster/control-plane/kwok-config.ts';
import type { Fault } from './fault.ts';
import { insist } from './insist.ts';

const MOST_LOOKS = 30;
const CALM_LOOKS = 5;
const BETWEEN_LOOKS_MS = 1_000;

/** The node's kubelet reports nothing good, so controllers mark its Pods as not ready. */
export class UnreadyNode implements Fault {
  readonly kind = 'node unready';
  readonly victim: string;
  readonly others = 'lead';
  readonly lastsMs: number;
  readonly #cluster: Pick<Cluster, 'kubectl' | 'kubectlAs'>;

  constructor(
    cluster: Pick<Cluster, 'kubectl' | 'kubectlAs'>,
    { node, lastsMs }: { readonly node: string; readonly lastsMs: number },
  ) {
    [this.#cluster, this.victim, this.lastsMs] = [cluster, node, lastsMs];
  }

  async begin(): Promise<void> {
    await this.#ask('label', 'node', this.victim, '--overwrite', `${STAGE_LABEL}=unready`);
  }

  /**
   * Does for the Pods what kwok does not. Controllers may be late, so it repeats until none is left
   * for a while.
   */
  async end(): Promise<void> {
    await this.#ask('label', 'node', this.victim, `${STAGE_LABEL}-`);
    await this.#ask('wait', '--for=condition=Ready', 'node', this.victim, '--timeout=30s');
    for (let [look, calm] = [0, 0]; look < MOST_LOOKS && calm < CALM_LOOKS; look += 1) {
      calm = (await this.#readyPods()) ? 0 : calm + 1;
      await setTimeout(BETWEEN_LOOKS_MS);
    }
  }

  async #readyPods(): Promise<boolean> {
    const pods = JSON.parse(
      await this.#ask(
        'get',
        'pods',
        '-A',
        '--field-selector',
        `spec.nodeName=${this.victim},status.phase=Running`,
        '-o',
        'json',
      ),
    ) as {
      readonly items: readonly {
        readonly metadata: { readonly namespace: string; readonly name: string };
        readonly status: {
          readonly conditions?: readonly { readonly type: string; readonly status: string }[];
        };
      }[];
    };
    const unready = pods.items.filter(
      ({ status }) => status.conditions?.find(({ type }) => type === 'Ready')?.status !== 'True',
    );
    for (const {
      metadata: { namespace, name },
    } of unready) {
      const patch = JSON.stringify({ status: { conditions: [{ type: 'Ready', status: 'True' }] } });
      await insist(async () => {
        const { exitCode, stderr } = await this.#cluster.kubectlAs('admin', [
          'patch',
          'pod',
          name,
          '-n',
          namespace,
          '--subresource=status',
          '--type=strategic',
          '-p',
          patch,
        ]);
        if (exitCode !== 0 && !stderr.includes('NotFound')) throw new Error(stderr);
      });
    }
    return unready.length > 0;
  }

  async #ask(...args: readonly string[]): Promise<string> {
    return await insist(() => this.#cluster.kubectl(...args));
  }
}
