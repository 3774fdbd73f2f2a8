import type { Clock } from '../../contracts/clock.ts';
import {
  MAX_CONSOLE_SESSIONS,
  MAX_CONSOLE_SESSIONS_OF_PERSON,
  type ConsoleSessions,
  type KeptConsoleSession,
} from '../../contracts/coordination/console-sessions.ts';
import { unavailable } from '../../model/refusals.ts';

interface Entry {
  session: KeptConsoleSession;
  readonly idleMs: number;
}

/** A restart of the daemon ends all sessions. */
export const inProcessConsoleSessions = (clock: Clock): ConsoleSessions => {
  /** Oldest first. */
  const entries = new Map<string, Entry>();
  const good = ({ session, idleMs }: Entry, now = clock.now()): boolean =>
    now < session.endsAt && now - session.seenAt < idleMs;
  const forgetEnded = (): void => {
    for (const [id, entry] of entries) if (!good(entry)) entries.delete(id);
  };
  const of = (operator: string): readonly string[] =>
    [...entries].filter(([, { session }]) => session.operator === operator).map(([id]) => id);
  return {
    openConsoleSession: async ({ id, operator, value, idleMs, lifeMs, replaces }) => {
      if (replaces !== undefined) entries.delete(replaces);
      forgetEnded();
      const own = of(operator);
      for (const oldest of own.slice(0, Math.max(0, own.length - MOST_BEFORE)))
        entries.delete(oldest);
      if (entries.size >= MAX_CONSOLE_SESSIONS)
        throw unavailable('the console has the maximum number of sessions');
      const now = clock.now();
      const session = { id, operator, value, openedAt: now, seenAt: now, endsAt: now + lifeMs };
      entries.set(id, { session, idleMs });
    },
    useConsoleSession: async (id) => {
      forgetEnded();
      const entry = entries.get(id);
      if (entry) entry.session = { ...entry.session, seenAt: clock.now() };
      return entry?.session;
    },
    endConsoleSession: async (id) => {
      forgetEnded();
      return entries.delete(id);
    },
    endConsoleSessionsOf: async (operator) => {
      forgetEnded();
      const own = of(operator);
      for (const id of own) entries.delete(id);
      return own.length;
    },
    consoleSessions: async () => {
      forgetEnded();
      return [...entries.values()].map(({ session }) => session);
    },
  };
};

const MOST_BEFORE = MAX_CONSOLE_SESSIONS_OF_PERSON - 1;
