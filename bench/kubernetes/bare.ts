import { Child } from '../child.ts';
import type { Ask } from '../kept-connection.ts';
import type { BenchCluster } from './cluster.ts';

export type BareOrder =
  | {
      readonly kind: 'open';
      readonly kubeconfig: string;
      readonly redisPort: number;
      readonly namespace: string;
      readonly count: number;
    }
  | { readonly kind: 'give back' };

export class Bare {
  readonly port: number;
  readonly #child: Child<BareOrder, number>;

  private constructor(child: Child<BareOrder, number>, port: number) {
    this.#child = child;
    this.port = port;
  }

  static async start({ controlPlane, redis }: BenchCluster, count: number): Promise<Bare> {
    const child = new Child<BareOrder, number>('kubernetes/bare-server');
    const port = await child.ask({
      kind: 'open',
      kubeconfig: controlPlane.kubeconfig('sandpool'),
      redisPort: Number(new URL(redis.settings.urls[0] ?? '').port),
      namespace: await controlPlane.namespace('bench-bare'),
      count,
    });
    return new Bare(child, port);
  }

  get pid(): number {
    return this.#child.pid;
  }

  asks(count: number): readonly Ask[] {
    return Array.from({ length: count }, () => ({
      method: 'POST',
      path: '/sandboxes',
      body: JSON.stringify({ poolName: 'bench' }),
    }));
  }

  async giveBack(): Promise<void> {
    await this.#child.ask({ kind: 'give back' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child[Symbol.asyncDispose]();
  }
}
