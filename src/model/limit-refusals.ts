import { Refusal, unavailable } from './refusals.ts';

export const tooManyEnvs = (limit: number): Refusal =>
  new Refusal('CONFLICT', `you have ${limit} envs, which is the most; delete one first`);

export const tooManyMembers = (limit: number): Refusal =>
  new Refusal('CONFLICT', `the env has ${limit} members, which is the most; delete one first`);

export const tooManyGroups = (limit: number): Refusal =>
  new Refusal(
    'CONFLICT',
    `the env has ${limit} autoscaling groups, which is the most; delete one first`,
  );

const QUOTA_RETRY_SECONDS = 30;

export const sandboxQuotaExceeded = (limit: number): Refusal =>
  new Refusal('QUOTA_EXCEEDED', 'scale failed', {
    detail: {
      errCode: 'QUOTA_EXCEEDED',
      message: `the quota of ${limit} sandboxes is used up; give one back first`,
      retryAfter: QUOTA_RETRY_SECONDS,
    },
    retryAfter: QUOTA_RETRY_SECONDS,
  });

/** The refusal names `resource` only if it is `cpu` or `memory`. */
export const poolQuotaExceeded = (resource: string): Refusal =>
  new Refusal('QUOTA_EXCEEDED', 'scale failed', {
    detail: {
      errCode: 'QUOTA_EXCEEDED',
      ...(resource === 'cpu' || resource === 'memory' ? { resource } : {}),
    },
    retryAfter: QUOTA_RETRY_SECONDS,
  });

export const tooManyTerminals = (who: 'the sandbox has' | 'you have', limit: number): Refusal =>
  new Refusal(
    'TOO_MANY_TERMINALS',
    `${who} ${limit} terminals open, which is the most; close one first`,
    { retryAfter: 5 },
  );

export const tooManyTokens = (who: 'the sandbox has' | 'you have', limit: number): Refusal =>
  new Refusal(
    'RATE_LIMITED',
    `${who} ${limit} tokens that wait to be used, which is the most; ` +
      'use one, or wait until they are too old',
    { retryAfter: 5 },
  );

export const tokensAllTaken = (): Refusal =>
  unavailable('too many tokens are waiting to be used; try again shortly', 5);

export const tooManyCommands = (
  who: 'the sandbox has' | 'you have' | 'the replica has',
  limit: number,
): Refusal =>
  new Refusal(
    'TOO_MANY_COMMANDS',
    `${who} ${limit} commands under way, which is the most; wait for one to end`,
    { retryAfter: 1 },
  );

export const tooManyCalls = (who: 'the sandbox has' | 'you have', limit: number): Refusal =>
  new Refusal(
    'TOO_MANY_COMMANDS',
    `${who} ${limit} starts and inputs of processes under way, which is the most; ` +
      'wait for one to be answered',
    { retryAfter: 1 },
  );

export const tooManyProcesses = (why: string): Refusal =>
  new Refusal('TOO_MANY_PROCESSES', `${why}; end or delete one first`, { retryAfter: 5 });

export const tooManyStreams = (
  who: 'the sandbox has' | 'you have' | 'the replica has',
  limit: number,
): Refusal =>
  new Refusal(
    'TOO_MANY_STREAMS',
    `${who} ${limit} streams open, which is the most; close one first`,
    { retryAfter: 5 },
  );

export const tooManyWaiting = (where: 'for this pool' | 'for your pools', limit: number): Refusal =>
  new Refusal(
    'TOO_MANY_WAITING',
    `${limit} claims wait ${where}, which is the most; try again later`,
    { retryAfter: 5 },
  );

export const tooManyLaunches = (limit: number): Refusal =>
  new Refusal(
    'TOO_MANY_WAITING',
    `${limit} sandboxes are started for claims of yours, which is the most; try again shortly`,
    { retryAfter: 5 },
  );

export const answersShareMet = (): Refusal =>
  new Refusal(
    'RATE_LIMITED',
    'your answers under way take as much memory as one tenant may; ' +
      'try again once some of them are read',
    { retryAfter: 1 },
  );

export const answersTakeAll = (): Refusal =>
  unavailable(
    'the answers under way take all the memory that there is for them; try again shortly',
  );

/** The command's earlier effects stand. */
export const endedWhilePrinting = ({ code, message, retryAfter }: Refusal): Refusal =>
  new Refusal(code, `the command was ended while it printed: ${message}`, { retryAfter });

export const tooManyConnections = (
  who: 'the sandbox has' | 'you have' | 'the replica has',
  limit: number,
): Refusal =>
  new Refusal(
    'TOO_MANY_CONNECTIONS',
    `${who} ${limit} requests to endpoints under way, which is the most; wait for one to end`,
    { retryAfter: 1 },
  );

export const tooMuchWaits = (): Refusal =>
  new Refusal(
    'RATE_LIMITED',
    'too many requests of yours that take long wait for their turn; wait for some to be answered',
    { retryAfter: 1 },
  );

export const keyRateMet = (retryAfter: number, perSecond: number): Refusal =>
  new Refusal(
    'RATE_LIMITED',
    `this API key may send ${perSecond} requests a second, and sent more; try again later`,
    { retryAfter },
  );

export const tooManyLinks = (retryAfter: number): Refusal =>
  new Refusal('RATE_LIMITED', 'too many signed links are looked up; try again', { retryAfter });

export const tooManyBadKeys = (retryAfter: number): Refusal =>
  new Refusal(
    'RATE_LIMITED',
    'too many rejected API keys or links from this address; try again later',
    { retryAfter },
  );
