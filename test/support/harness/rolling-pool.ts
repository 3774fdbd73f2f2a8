import { eventually } from './eventually.ts';
import type { HttpClient } from './http-client.ts';

export interface PoolCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
}

export interface RollingStatus {
  readonly phase: string;
  readonly idleReplicas: number;
  readonly runningReplicas: number;
  readonly updateRevision: string;
  readonly updatedReplicas: number;
  readonly outdatedReplicas: number;
  readonly conditions: readonly PoolCondition[];
}

/** A pool over REST during a rollout. */
export class RollingPool {
  readonly #client: HttpClient;
  readonly #name: string;

  constructor(client: HttpClient, name: string) {
    this.#client = client;
    this.#name = name;
  }

  async status(): Promise<RollingStatus> {
    const answer = await this.#client.get(`/sandboxpools/${this.#name}`);
    if (answer.status !== 200)
      throw new Error(`the pool answered ${answer.status}: ${answer.text}`);
    return (JSON.parse(answer.text) as { template: { status: RollingStatus } }).template.status;
  }

  /** Returns the new revision. */
  async edit(body: object): Promise<string> {
    const answer = await this.#client.put(`/sandboxpools/${this.#name}`, body);
    if (answer.status !== 200)
      throw new Error(`the edit was answered with ${answer.status}: ${answer.text}`);
    return (await this.status()).updateRevision;
  }

  /** `see` gets every status on the way. */
  async until(
    what: string,
    look: (status: RollingStatus) => boolean,
    see: (status: RollingStatus) => unknown = () => undefined,
  ): Promise<RollingStatus> {
    let status = await this.status();
    await eventually(
      async () => {
        status = await this.status();
        await see(status);
        return look(status);
      },
      what,
      () => status,
    );
    return status;
  }

  rolledOut(see?: (status: RollingStatus) => unknown): Promise<RollingStatus> {
    return this.until(
      'it is rolled out',
      ({ phase, outdatedReplicas }) => phase === 'Ready' && outdatedReplicas === 0,
      see,
    );
  }
}
