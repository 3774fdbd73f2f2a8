import { Child } from '../child.ts';
import type { Ask } from '../kept-connection.ts';
import type { BareAnswer, BareOrder } from './bare-protocol.ts';
import type { BenchCluster } from './cluster.ts';

/** The bare server's process, with records of its own. */
export class Bare {
  readonly port: number;
  readonly #child: Child<BareOrder, BareAnswer>;

  private constructor(child: Child<BareOrder, BareAnswer>, port: number) {
    this.#child = child;
    this.port = port;
  }

  static async start({ controlPlane, redis }: BenchCluster, count: number): Promise<Bare> {
    const child = new Child<BareOrder, BareAnswer>('kubernetes/bare-process');
    const redisPort = Number(new URL(redis.settings.urls[0] ?? '').port);
    const namespace = await controlPlane.namespace('bench-bare');
    return new Bare(
      child,
      portOf(
        await child.ask({
          kind: 'open',
          kubeconfig: controlPlane.kubeconfig('sandpool'),
          redisPort,
          namespace,
          count,
        }),
      ),
    );
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
    portOf(await this.#child.ask({ kind: 'give back' }));
  }

  async stop(): Promise<void> {
    await this.#child.stop();
  }
}

const portOf = (answer: BareAnswer): number => {
  if ('failed' in answer) throw new Error(`the bare server failed: ${answer.failed}`);
  return answer.port;
};
