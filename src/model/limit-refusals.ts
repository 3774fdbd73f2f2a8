import { Refusal, unavailable } from './refusals.ts';

export const tooManyEnvs = (limit: number): Refusal =>
  new Refusal('CONFLICT', `you have ${limit} envs, which is the maximum; delete one first`);

export const tooManyMembers = (limit: number): Refusal =>
  new Refusal('CONFLICT', `the env has ${limit} members, which is the maximum; delete one first`);

export const tooManyGroups = (limit: number): Refusal =>
  new Refusal(
    'CONFLICT',
    `the env has ${limit} autoscaling groups, which is the maximum; delete one first`,
  );

const QUOTA_RETRY_SECONDS = 30;

export const sandboxQuotaExceeded = (limit: number): Refusal =>
  new Refusal('QUOTA_EXCEEDED', 'scale failed', {
    detail: {
      errCode: 'QUOTA_EXCEEDED',
      message: `the quota of ${limit} sandboxes is used up; delete a sandbox first`,
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
    `${who} ${limit} open terminals, which is the maximum; close one first`,
    { retryAfter: 5 },
  );

export const tooManyTokens = (who: 'the sandbox has' | 'you have', limit: number): Refusal =>
  new Refusal(
    'RATE_LIMITED',
    `${who} ${limit} unused tokens, which is the maximum; use one, or wait until one expires`,
    { retryAfter: 5 },
  );

export const tokensAllTaken = (): Refusal =>
  unavailable('there are too many unused tokens; try again shortly', 5);

export const tooManyCommands = (
  who: 'the sandbox has' | 'you have' | 'the replica has',
  limit: number,
): Refusal =>
  new Refusal(
    'TOO_MANY_COMMANDS',
    `${who} ${limit} commands in progress, which is the maximum; wait for one to end`,
    { retryAfter: 1 },
  );

export const tooManyCalls = (who: 'the sandbox has' | 'you have', limit: number): Refusal =>
  new Refusal(
    'TOO_MANY_COMMANDS',
    `${who} ${limit} starts and inputs of processes in progress, which is the maximum; wait ` +
      'for one to be answered',
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
    `${who} ${limit} open streams, which is the maximum; close one first`,
    { retryAfter: 5 },
  );

export const tooManyWaiting = (where: 'for this pool' | 'for your pools', limit: number): Refusal =>
  new Refusal(
    'TOO_MANY_WAITING',
    `${limit} claims wait ${where}, which is the maximum; try again later`,
    { retryAfter: 5 },
  );

export const tooManyLaunches = (limit: number): Refusal =>
  new Refusal(
    'TOO_MANY_WAITING',
    `${limit} sandboxes are starting for your claims, which is the maximum; try again shortly`,
    { retryAfter: 5 },
  );

export const answersShareMet = (): Refusal =>
  new Refusal(
    'RATE_LIMITED',
    'your responses in progress use as much memory as one tenant may; read them, or try ' +
      'again later',
    { retryAfter: 1 },
  );

export const answersTakeAll = (): Refusal =>
  unavailable('the responses in progress use all the memory for responses; try again shortly');

/** The command's earlier effects stand. */
export const endedWhilePrinting = ({ code, message, retryAfter }: Refusal): Refusal =>
  new Refusal(code, `the command was ended while it printed: ${message}`, { retryAfter });

export const tooManyConnections = (
  who: 'the sandbox has' | 'you have' | 'the replica has',
  limit: number,
): Refusal =>
  new Refusal(
    'TOO_MANY_CONNECTIONS',
    `${who} ${limit} requests to endpoints in progress, which is the maximum; wait for one ` +
      'to end',
    { retryAfter: 1 },
  );

export const tooMuchWaits = (): Refusal =>
  new Refusal(
    'RATE_LIMITED',
    'too many of your long requests are waiting; wait for some of them to be answered',
    { retryAfter: 1 },
  );

export const keyRateMet = (retryAfter: number, perSecond: number): Refusal =>
  new Refusal(
    'RATE_LIMITED',
    `this API key has sent more than its ${perSecond} requests per second; try again later`,
    { retryAfter },
  );

export const tooManyLinks = (retryAfter: number): Refusal =>
  new Refusal('RATE_LIMITED', 'too many signed links are being checked; try again', { retryAfter });

export const tooManyBadKeys = (retryAfter: number): Refusal =>
  new Refusal(
    'RATE_LIMITED',
    'too many rejected API keys or links from this address; try again later',
    { retryAfter },
  );
