import { connect } from 'node:net';
import { AgentAway, AgentCall, AgentSilent } from '../../contracts/agent/agent-call.ts';
import { AgentFiles, type CallTerms } from '../../contracts/agent/agent-files.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { FilePlace } from '../../contracts/files.ts';
import { NotJoinable } from '../../contracts/sandbox-driver.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { SpawnerClient } from './spawner-client.ts';

/** An idle agent ends after a minute, possibly just as a request arrives. */
const MOST_AGENTS = 3;

export class EmbeddedFiles extends AgentFiles {
  readonly #clock: Clock;
  readonly #spawner: Pick<SpawnerClient, 'socketTo'>;
  readonly #agents = new Map<InstanceId, KnownAgent>();

  constructor(clock: Clock, spawner: Pick<SpawnerClient, 'socketTo'>) {
    super();
    this.#clock = clock;
    this.#spawner = spawner;
  }

  /** Starts the agent in advance: its start takes longer than a request. */
  override prepare(id: InstanceId): void {
    // Its next call reports the failure.
    this.#socketOf(id, undefined).catch(() => {});
  }

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
    throw new NotJoinable('the agent for its files ends repeatedly');
  }

  /** A user may have stopped the agent with a signal. */
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
  /** The agent took a connection, but no request. */
  readonly silent: boolean;
}
