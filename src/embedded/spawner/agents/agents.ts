import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { Agent, type AgentKind } from './agent.ts';
import type { JoinPlace } from '../sandbox/join-place.ts';

export class NothingThere extends Error {
  override readonly name = 'NothingThere';
}

/** Agents of one kind: at most one per sandbox, started on first use. */
export class Agents {
  readonly #kind: AgentKind;
  readonly #folder: string;
  readonly #launcherPath: () => string;
  readonly #placeOf: (id: string) => JoinPlace | undefined;
  readonly #agents = new Map<string, Agent>();

  constructor(options: {
    readonly kind: AgentKind;
    readonly folder: string;
    readonly launcherPath: () => string;
    readonly placeOf: (id: string) => JoinPlace | undefined;
  }) {
    this.#kind = options.kind;
    this.#folder = options.folder;
    this.#launcherPath = options.launcherPath;
    this.#placeOf = options.placeOf;
  }

  prepare(): void {
    rmSync(this.#folder, { recursive: true, force: true });
    mkdirSync(this.#folder, { mode: 0o700 });
  }

  /** Never returns `stale`. Rejects with NothingThere unless the instance runs. */
  async socketOf(id: string, stale?: string): Promise<string> {
    let agent = this.#agents.get(id);
    if (agent && agent.socket === stale) {
      agent.close();
      agent = undefined;
    }
    if (!agent) {
      const place = this.#placeOf(id);
      if (!place) throw new NothingThere('the sandbox is not running');
      agent = this.#start(id, place);
    }
    try {
      await agent.ready;
      return agent.socket;
    } catch (error) {
      throw this.#placeOf(id) ? error : new NothingThere('the sandbox ended', { cause: error });
    }
  }

  stop(): void {
    for (const agent of this.#agents.values()) agent.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #start(id: string, place: JoinPlace): Agent {
    // Never reused: a stale path never leads to another sandbox.
    const name = randomBytes(6).toString('base64url');
    const agent = new Agent({
      kind: this.#kind,
      launcherPath: this.#launcherPath(),
      place,
      folder: this.#folder,
      name,
    });
    this.#agents.set(id, agent);
    void agent.ended.then(() => {
      if (this.#agents.get(id) === agent) this.#agents.delete(id);
    });
    return agent;
  }
}
