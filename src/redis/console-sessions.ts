import {
  MAX_CONSOLE_SESSIONS,
  MAX_CONSOLE_SESSIONS_OF_PERSON,
  type ConsoleSessions,
  type KeptConsoleSession,
} from '../contracts/coordination/console-sessions.ts';
import { unavailable } from '../model/refusals.ts';
import type { RedisPlace } from './redis-link.ts';

export const redisConsoleSessions = ({ link, keys }: RedisPlace): ConsoleSessions => {
  const names = [keys.consoleSessions];
  return {
    openConsoleSession: async ({ id, operator, value, idleMs, lifeMs, replaces = '' }) => {
      const [answer] = await link.run('open_console_session', names, [
        id,
        operator,
        value,
        idleMs,
        lifeMs,
        replaces,
        MAX_CONSOLE_SESSIONS_OF_PERSON,
        MAX_CONSOLE_SESSIONS,
      ]);
      if (answer !== 'ok') throw unavailable('the console has the maximum number of sessions');
    },
    useConsoleSession: async (id) => {
      const [answer, text] = await link.run('use_console_session', names, [id]);
      return answer === 'ok' ? sessionOf(text) : undefined;
    },
    endConsoleSession: async (id) =>
      (await link.run('end_console_session', names, [id]))[0] === 'ok',
    endConsoleSessionsOf: async (operator) =>
      Number((await link.run('end_console_sessions_of', names, [operator]))[1]),
    consoleSessions: async () =>
      (await link.run('console_sessions', names, [])).slice(1).map(sessionOf),
  };
};

const sessionOf = (text: unknown): KeptConsoleSession =>
  JSON.parse(String(text)) as KeptConsoleSession;
