import type { Clock } from '../../contracts/clock.ts';
import type { ConsoleSessions } from '../../contracts/coordination/console-sessions.ts';
import type { LocalOperator, Operators, OperatorsChange } from '../../contracts/operators.ts';
import type { ConsoleRole } from '../../model/console-session.ts';
import { invalidArgument, Refusal } from '../../model/refusals.ts';

export interface OperatorCommandsDeps {
  readonly operators: Operators;
  /** Absent if the daemon must not write the file. */
  readonly change: OperatorsChange | undefined;
  readonly entryOf: (given: unknown) => Promise<LocalOperator>;
  readonly sessions: Pick<ConsoleSessions, 'endConsoleSessionsOf'>;
  readonly clock: Clock;
}

export interface ShownOperator {
  readonly name: string;
  readonly role: ConsoleRole;
  readonly users: readonly string[];
  readonly locked: boolean;
}

export class OperatorCommands {
  readonly #deps: OperatorCommandsDeps;

  constructor(deps: OperatorCommandsDeps) {
    this.#deps = deps;
  }

  list(): { readonly operators: readonly ShownOperator[]; readonly locked: readonly string[] } {
    const { operators } = this.#deps;
    const known = operators.list();
    return {
      operators: known
        .map(({ name, role, users }) => ({ name, role, users, locked: operators.isLocked(name) }))
        .toSorted((a, b) => a.name.localeCompare(b.name)),
      locked: operators.locked().filter((one) => !known.some(({ name }) => name === one)),
    };
  }

  /** Also changes an existing operator; ends the sessions. */
  async add(given: unknown): Promise<{ readonly name: string; readonly replaced: boolean }> {
    const change = this.#change();
    const addedAt = new Date(this.#deps.clock.now()).toISOString();
    const operator = await this.#deps.entryOf({ ...(given as object), addedAt });
    const { name } = operator;
    const replaced = this.#deps.operators.find(name) !== undefined;
    change.put(operator);
    await this.#deps.sessions.endConsoleSessionsOf(name);
    return { name, replaced };
  }

  async remove(name: string): Promise<object> {
    if (!this.#change().remove(name))
      throw new Refusal('NOT_FOUND', `there is no operator ${name}`);
    return { name, sessionsEnded: await this.#deps.sessions.endConsoleSessionsOf(name) };
  }

  async lock(identity: string): Promise<object> {
    if (identity === '') throw invalidArgument('identity', 'is required');
    this.#change().lock(identity);
    return { identity, sessionsEnded: await this.#deps.sessions.endConsoleSessionsOf(identity) };
  }

  async unlock(identity: string): Promise<object> {
    if (!this.#change().unlock(identity))
      throw new Refusal('NOT_FOUND', `${identity} is not locked`);
    return { identity };
  }

  #change(): OperatorsChange {
    const { change } = this.#deps;
    if (!change)
      throw new Refusal(
        'FEATURE_DISABLED',
        'operators are stored in operators.json of the Secret: create an entry with ' +
          '`sandpool operators entry`, and list locked identities under "locked"',
      );
    return change;
  }
}
