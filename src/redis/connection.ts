import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { RedisSettings } from './settings.ts';

/** In ms. */
export const COMMAND_MS = 1_000;
/** Pings come more often. */
const SILENCE_MS = 6_000;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 1_000;

export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** Unconnected; reconnects after each loss. `name` shows in Redis' CLIENT LIST. */
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
    slotsRefreshInterval: 0, // the link refreshes slots; a timer would outlive the client
    retryDelayOnFailover: 100,
    retryDelayOnClusterDown: 100,
    maxRedirections: 3,
    // Certificates name hosts, but nodes announce addresses.
    ...(isSecure(settings) ? { dnsLookup: (address, callback) => callback(null, address) } : {}),
  });
};

/** Unconnected; for a single connection. */
export const redisNodeClient = (settings: RedisSettings, name: string, node: RedisNode): Redis =>
  new Redis({
    ...optionsOf(settings, name),
    ...node,
    lazyConnect: true,
    enableOfflineQueue: false,
    retryStrategy: () => null,
  });

export const nodesOf = ({ urls }: RedisSettings): readonly RedisNode[] =>
  urls.map((url) => {
    const { hostname, port } = new URL(url);
    return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 6379) };
  });

/** In ms, by the number of failures. */
export const retryAfter = (times: number): number =>
  Math.min(FIRST_RETRY_MS * 2 ** Math.min(times, 10), LAST_RETRY_MS) * (0.75 + Math.random() / 2);

const isSecure = ({ urls }: RedisSettings): boolean =>
  urls.some((url) => url.startsWith('rediss:'));

/**
 * The library must not repeat commands: nobody waits for them, and a failure would end the process.
 */
const optionsOf = (settings: RedisSettings, name: string) =>
  ({
    connectionName: `sandpool-${name}`,
    disableClientInfo: true,
    protocol: 2,
    commandTimeout: COMMAND_MS,
    connectTimeout: COMMAND_MS,
    disconnectTimeout: COMMAND_MS, // also applies after the connection has closed
    socketTimeout: SILENCE_MS,
    maxRetriesPerRequest: 1,
    maxLoadingRetryTime: COMMAND_MS,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    // A failover has made the node a replica.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
    ...(settings.username === undefined ? {} : { username: settings.username }),
    ...(settings.password === undefined ? {} : { password: settings.password }),
    ...(isSecure(settings) ? { tls: settings.ca === undefined ? {} : { ca: settings.ca } } : {}),
  }) as const satisfies RedisOptions;
