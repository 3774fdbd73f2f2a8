import type { Call, CallOptions } from './operation-request.ts';
import type { Sandbox } from './wire.ts';

/** Pauses sandboxes, and has them go on. */
export class StateCalls {
  readonly #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  /** `paused`: it keeps its memory, and stands still. */
  async set(
    sandboxId: string,
    state: 'paused' | 'running',
    options?: CallOptions,
  ): Promise<Sandbox> {
    const input = { params: { sandboxId }, body: { state } };
    return (await this.#call('setSandboxState', input, options)).sandbox;
  }
}
