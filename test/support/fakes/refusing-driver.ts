import type { InstanceId, Revision } from '../../../src/model/identifiers.ts';
import type { End, InstanceFact } from '../../../src/model/sandbox.ts';
import { FakeSandboxDriver } from './fake-sandbox-driver.ts';

/** `deletes`: refuses writes that end something. `all`: also reads. `silent`: never answers. */
export type Refusal = 'deletes' | 'all' | 'silent';

/** Refuses in some namespaces, as without a role binding. */
export class RefusingDriver extends FakeSandboxDriver {
  readonly refused = new Map<string, Refusal>();
  refusals = 0;

  override async retire(id: InstanceId, seen: Revision): Promise<void> {
    await this.#ask(id, ['deletes', 'all']);
    return await super.retire(id, seen);
  }

  override async release(id: InstanceId, end: End): Promise<void> {
    await this.#ask(id, ['deletes', 'all']);
    return await super.release(id, end);
  }

  override async read(id: InstanceId): Promise<InstanceFact> {
    await this.#ask(id, ['all']);
    return await super.read(id);
  }

  async #ask(id: InstanceId, refusedBy: readonly Refusal[]): Promise<void> {
    const stored = await this.records.read(id);
    const refusal = this.refused.get(stored?.record.poolOwner.namespace ?? '');
    if (refusal === undefined) return;
    if (refusal === 'silent') return await new Promise(() => undefined);
    if (!refusedBy.includes(refusal)) return;
    this.refusals += 1;
    throw new Error('403: forbidden');
  }
}
