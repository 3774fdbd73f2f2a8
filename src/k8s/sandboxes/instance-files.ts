import { AgentAway, AgentCall } from '../../contracts/agent/agent-call.ts';
import { AgentFiles, type CallTerms } from '../../contracts/agent/agent-files.ts';
import { type Clock, pause } from '../../contracts/clock.ts';
import { FileRefused, type FilePlace } from '../../contracts/files.ts';
import { NotJoinable, OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { AgentStream } from '../streams/agent-stream.ts';
import { NoAgent } from '../streams/no-agent.ts';
import type { PodTarget } from './pods/pod-presence.ts';

export interface InstanceFilesDeps {
  readonly enter: <T>(
    id: InstanceId,
    container: string | undefined,
    way: (pod: PodTarget) => Promise<T>,
  ) => Promise<T>;
  readonly openAgent: (pod: PodTarget) => Promise<AgentStream>;
  readonly clock: Clock;
}

/** May be repeated, as may the request for a lost answer. */
const REPEATABLE: ReadonlySet<unknown> = new Set([
  'stat',
  'read',
  'list',
  'watch',
  'pack',
  'answer',
]);
/** Tries, pause in ms, and time in ms after which no try begins. */
const MOST_TRIES = 6;
const TRY_AGAIN_MS = 500;
const TRYING_MS = 30_000;

export class InstanceFiles extends AgentFiles {
  protected override readonly keepsAnswers = true;
  readonly #deps: InstanceFilesDeps;

  constructor(deps: InstanceFilesDeps) {
    super();
    this.#deps = deps;
  }

  /** Each call starts an agent in the Pod. */
  override prepare(): void {}

  protected override async begin(
    place: FilePlace,
    tokens: readonly (string | Buffer)[],
    terms: CallTerms,
  ): Promise<AgentCall> {
    const until = this.#deps.clock.now() + TRYING_MS;
    for (let tries = 1; ; tries += 1) {
      terms.signal.throwIfAborted();
      try {
        return await this.#try(place, tokens, terms);
      } catch (error) {
        const isLost =
          error instanceof OutcomeUnknown ||
          (tokens[0] === 'answer' && error instanceof NotJoinable);
        const mayAgain = tries < MOST_TRIES && this.#deps.clock.now() < until;
        if (!isLost || !REPEATABLE.has(tokens[0]) || !mayAgain) throw error;
      }
      await pause(this.#deps.clock, TRY_AGAIN_MS, terms.signal);
    }
  }

  async #try(
    { id, container }: FilePlace,
    tokens: readonly (string | Buffer)[],
    terms: CallTerms,
  ): Promise<AgentCall> {
    const { enter, openAgent, clock } = this.#deps;
    return await enter(id, container, async (pod) => {
      const connection = await openAgent(pod);
      const hold = (bytes: number): void => {
        connection.hold(bytes);
      };
      const call = new AgentCall({ ...terms, connection, hold, tokens, clock });
      await call.head().catch((error: unknown) => {
        throw notBegun(error);
      });
      return call;
    });
  }
}

/** No agent has taken the request. */
const notBegun = (error: unknown): unknown => {
  const why = error instanceof AgentAway ? (error.cause ?? error) : error;
  return why instanceof NoAgent ? new FileRefused('unsupported', why.message) : why;
};
