import { Child } from '../child.ts';
import type { Daemon } from '../daemon.ts';
import { joinTokenOf, linkAddressOf } from './a-fleet.ts';
import type { WorkersAnswer, WorkersOrder } from './worker-protocol.ts';

/** A process of clusters that are links alone, to one manager or to several. */
export class Workers {
  readonly #child = new Child<WorkersOrder, WorkersAnswer>('fleet/workers-process');

  get pid(): number {
    return this.#child.pid;
  }

  /** Has each link to the manager and list so many sandboxes. */
  async join(manager: Daemon, names: readonly string[], sandboxes: number): Promise<void> {
    const workers = [];
    for (const clusterId of names)
      workers.push({ clusterId, token: await joinTokenOf(manager, clusterId) });
    const address = linkAddressOf(manager.service.port);
    await this.#child.ask({ kind: 'join', manager: address, workers, sandboxes });
  }

  async stop(): Promise<void> {
    await this.#child.stop();
  }
}

export const namesOf = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, n) => `${prefix}${n}`);
