import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { Agent, type AgentKind } from './agent.ts';
import type { JoinPlace } from '../sandbox/join-place.ts';

/** The instance is not there to be reached. */
export class NothingThere extends Error {
  override readonly name = 'NothingThere';
}

/**
 * The agents of one kind of all sandboxes: started when they are first asked for, one at most each.
 */
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

  /** Removes what a former process left. */
  prepare(): void {
    rmSync(this.#folder, { recursive: true, force: true });
    mkdirSync(this.#folder, { mode: 0o700 });
  }

  /**
   * A socket that takes connections to what the agent serves, and another one than `stale`. Rejects
   * with NothingThere unless it runs.
   */
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
    // Never used twice, so that a name that somebody kept leads nowhere and not to another sandbox.
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
