import { connect } from 'node:net';
import { AgentAway, AgentCall, AgentSilent } from '../../contracts/agent/agent-call.ts';
import { AgentFiles, type CallTerms } from '../../contracts/agent/agent-files.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { FilePlace } from '../../contracts/files.ts';
import { NotJoinable } from '../../contracts/sandbox-driver.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { SpawnerClient } from './spawner-client.ts';

/** An agent ends when it was not used for a minute, which may be the moment when it is asked. */
const MOST_AGENTS = 3;

/** The files of sandboxes on this machine: the spawner starts the agent of each. */
export class EmbeddedFiles extends AgentFiles {
  readonly #clock: Clock;
  readonly #spawner: Pick<SpawnerClient, 'socketTo'>;
  readonly #agents = new Map<InstanceId, KnownAgent>();

  constructor(clock: Clock, spawner: Pick<SpawnerClient, 'socketTo'>) {
    super();
    this.#clock = clock;
    this.#spawner = spawner;
  }

  /** Has its agent started, which takes longer than what is asked of it. */
  override prepare(id: InstanceId): void {
    // Where it fails, the call that needs it is told.
    this.#socketOf(id, undefined).catch(() => {});
  }

  /** It is no more. */
  forget(id: InstanceId): void {
    this.#agents.delete(id);
  }

  protected override async begin(
    { id }: FilePlace,
    tokens: readonly (string | Buffer)[],
    terms: CallTerms,
  ): Promise<AgentCall> {
    let stale: string | undefined;
    for (let tries = 0; tries < MOST_AGENTS; tries += 1) {
      const path = await this.#socketOf(id, stale);
      terms.signal.throwIfAborted();
      const connection = connect(path);
      const call = new AgentCall({ ...terms, connection, tokens, clock: this.#clock });
      try {
        await call.head();
        return call;
      } catch (error) {
        if (error instanceof AgentSilent) this.#distrust(id, path);
        if (!(error instanceof AgentAway)) throw error;
        if (this.#agents.get(id)?.path === path) this.#agents.delete(id);
        stale = path;
      }
    }
    throw new NotJoinable('the agent for its files ends again and again');
  }

  /** It may have been stopped alone, and never go on: the next call has another in its place. */
  #distrust(id: InstanceId, path: string): void {
    if (this.#agents.get(id)?.path === path) this.#agents.set(id, { path, silent: true });
  }

  async #socketOf(id: InstanceId, stale: string | undefined): Promise<string> {
    const known = this.#agents.get(id);
    if (known && !known.silent && known.path !== stale) return known.path;
    const unwanted = known?.silent === true ? known.path : stale;
    const order = { type: 'files' as const, id, ...(unwanted ? { stale: unwanted } : {}) };
    const path = await this.#spawner.socketTo(order);
    this.#agents.set(id, { path, silent: false });
    return path;
  }
}

interface KnownAgent {
  readonly path: string;
  /** It took a connection, and no request. */
  readonly silent: boolean;
}
