import type { ConsoleSessions } from '../../contracts/coordination/console-sessions.ts';
import { Refusal } from '../../model/refusals.ts';
import { listed } from './console-access.ts';
import type { ListedSession } from './console-operations.ts';

export class SessionCommands {
  readonly #sessions: ConsoleSessions;

  constructor(sessions: ConsoleSessions) {
    this.#sessions = sessions;
  }

  /** Newest first. */
  async list(): Promise<{ readonly sessions: readonly ListedSession[] }> {
    const kept = await this.#sessions.consoleSessions();
    return { sessions: kept.map(listed).toSorted((a, b) => b.openedAt - a.openedAt) };
  }

  async end(sessionId: string): Promise<object> {
    if (!(await this.#sessions.endConsoleSession(sessionId)))
      throw new Refusal('NOT_FOUND', `there is no session ${sessionId}`);
    return { sessionId };
  }

  /** Defaults to everybody. A login during the call may survive. */
  async endAll(operator: string | undefined): Promise<{ readonly sessionsEnded: number }> {
    const whose =
      operator === undefined
        ? new Set((await this.#sessions.consoleSessions()).map((session) => session.operator))
        : [operator];
    let sessionsEnded = 0;
    for (const each of whose) sessionsEnded += await this.#sessions.endConsoleSessionsOf(each);
    return { sessionsEnded };
  }
}
