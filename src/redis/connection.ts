import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { RedisSettings } from './settings.ts';

/** A command ends in so many ms, answered or not. */
export const COMMAND_MS = 1_000;
/** Without a byte for so long a connection counts as dead; pings come more often. */
const SILENCE_MS = 6_000;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 1_000;

export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/**
 * Makes a client that is not connected yet, and connects again whenever it is lost; `name` shows in
 * Redis' CLIENT LIST.
 */
export const redisClient = (settings: RedisSettings, name: string): Redis | Cluster => {
  const nodes = nodesOf(settings);
  if (!settings.cluster) {
    const [node] = nodes;
    if (!node) throw new Error('no address of Redis');
    return new Redis({
      ...optionsOf(settings, name),
      ...node,
      lazyConnect: true,
      enableOfflineQueue: false,
      retryStrategy: retryAfter,
    });
  }
  return new Cluster([...nodes], {
    lazyConnect: true,
    enableOfflineQueue: false,
    clusterRetryStrategy: retryAfter,
    redisOptions: optionsOf(settings, name),
    slotsRefreshTimeout: COMMAND_MS,
    slotsRefreshInterval: 0, // the link's: one under way at the end would go on for ever
    retryDelayOnFailover: 100,
    retryDelayOnClusterDown: 100,
    maxRedirections: 3,
    // Certificates name hosts, nodes announce addresses.
    ...(isSecure(settings) ? { dnsLookup: (address, callback) => callback(null, address) } : {}),
  });
};

/** Makes a client of one node that is not connected yet, and lives for one connection. */
export const redisNodeClient = (settings: RedisSettings, name: string, node: RedisNode): Redis =>
  new Redis({
    ...optionsOf(settings, name),
    ...node,
    lazyConnect: true,
    enableOfflineQueue: false,
    retryStrategy: () => null,
  });

/** The nodes that are configured: all there are to know at first. */
export const nodesOf = ({ urls }: RedisSettings): readonly RedisNode[] =>
  urls.map((url) => {
    const { hostname, port } = new URL(url);
    return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 6379) };
  });

/** Milliseconds to wait before the next attempt, after so many that failed. */
export const retryAfter = (times: number): number =>
  Math.min(FIRST_RETRY_MS * 2 ** Math.min(times, 10), LAST_RETRY_MS) * (0.75 + Math.random() / 2);

const isSecure = ({ urls }: RedisSettings): boolean =>
  urls.some((url) => url.startsWith('rediss:'));

/**
 * Makes the options of every connection. The library sends nothing on its own but what makes a
 * connection, whose failure it handles: a command that it repeats has nobody who waits for it, and
 * where that fails the process would end.
 */
const optionsOf = (settings: RedisSettings, name: string) =>
  ({
    connectionName: `sandpool-${name}`,
    disableClientInfo: true,
    protocol: 2,
    commandTimeout: COMMAND_MS,
    connectTimeout: COMMAND_MS,
    disconnectTimeout: COMMAND_MS, // runs out also where the connection closed long before
    socketTimeout: SILENCE_MS,
    maxRetriesPerRequest: 1,
    maxLoadingRetryTime: COMMAND_MS,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    // Loses what a failover made a copy.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
    ...(settings.username === undefined ? {} : { username: settings.username }),
    ...(settings.password === undefined ? {} : { password: settings.password }),
    ...(isSecure(settings) ? { tls: settings.ca === undefined ? {} : { ca: settings.ca } } : {}),
  }) as const satisfies RedisOptions;
