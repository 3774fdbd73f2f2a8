import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { RedisSettings } from '../../src/redis/settings.ts';
import { aCertificate, type Certificate } from './a-certificate.ts';

/** Debian's redis-server is a name for redis-check-rdb of redis-tools, which starts no service; the program goes by what it is called. */
const PROGRAM = ['/usr/bin/redis-server', '/usr/local/bin/redis-server', '/usr/bin/redis-check-rdb'].find((path) => existsSync(path));
const START_MS = 10_000;
const PASSWORD = 'only-for-tests';

export const noRedis = PROGRAM === undefined ? 'needs Redis: script/bootstrap --tests installs it' : undefined;

export interface RedisServerOptions {
  /** With TLS, and a password for the user `sandpool`. */
  readonly secure?: boolean;
  /** Without a log of what was written. */
  readonly forgetful?: boolean;
  /** More lines of redis.conf. */
  readonly config?: readonly string[];
}

/** A real Redis of a test's own, on the loopback, with an append-only file. */
export interface TestRedis {
  readonly settings: RedisSettings;
  /** As another client, that waits. */
  readonly client: Redis;
  /** kill -9, and waits for its end. */
  kill(): Promise<void>;
  /** On the same port and files. */
  restart(): Promise<void>;
  /** SIGSTOP, or SIGCONT. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  stop(): Promise<void>;
}

export const startRedis = async (options: RedisServerOptions = {}): Promise<TestRedis> => {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-redis-'));
  const certificate = options.secure ? aCertificate() : undefined;
  const port = await freePort();
  const configFile = join(folder, 'redis.conf');
  writeFileSync(configFile, configOf(options, { folder, port, certificate }));
  let server = await run(configFile, port);
  const settings: RedisSettings = {
    urls: [`${certificate ? 'rediss' : 'redis'}://127.0.0.1:${port}`], cluster: false, prefix: 'sandpool',
    ...(certificate ? { ca: certificate.cert, username: 'sandpool', password: PASSWORD } : {}),
  };
  const client = new Redis(port, '127.0.0.1', {
    ...(certificate ? { tls: { ca: certificate.cert }, username: 'sandpool', password: PASSWORD } : {}), retryStrategy: () => 50, maxRetriesPerRequest: null,
  });
  client.on('error', () => undefined);
  return {
    settings, client,
    kill: () => end(server),
    restart: async () => { server = await run(configFile, port); },
    signal: (name) => { server.kill(name); },
    stop: async () => {
      client.disconnect();
      await end(server);
      for (const path of [folder, certificate?.folder]) if (path !== undefined) rmSync(path, { recursive: true, force: true });
    },
  };
};

export interface TestRedisCluster {
  readonly settings: RedisSettings;
  readonly nodes: readonly Redis[];
  stop(): Promise<void>;
}

/** Three nodes that share the slots. */
export const startRedisCluster = async (): Promise<TestRedisCluster> => {
  const folders: string[] = [];
  const servers: ChildProcess[] = [];
  const nodes: Redis[] = [];
  for (let n = 0; n < NODES; n++) {
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-redis-'));
    const [port, bus] = [await freePort(), await freePort()];
    folders.push(folder);
    const configFile = join(folder, 'redis.conf');
    writeFileSync(configFile, configOf({ config: ['cluster-enabled yes', `cluster-port ${bus}`, 'cluster-config-file nodes.conf', 'cluster-node-timeout 2000'] }, { folder, port, certificate: undefined }));
    servers.push(await run(configFile, port));
    nodes.push(new Redis(port, '127.0.0.1', { maxRetriesPerRequest: null }).on('error', () => undefined));
    await nodes[0]?.call('CLUSTER', 'MEET', '127.0.0.1', String(port), String(bus));
  }
  for (const [n, node] of nodes.entries()) {
    const [first, last] = [Math.ceil((n * SLOTS) / NODES), Math.ceil(((n + 1) * SLOTS) / NODES) - 1];
    await node.call('CLUSTER', 'ADDSLOTSRANGE', String(first), String(last));
  }
  const deadline = performance.now() + START_MS;
  for (const node of nodes) {
    while (!String(await node.call('CLUSTER', 'INFO')).includes('cluster_state:ok') || !String(await node.call('CLUSTER', 'INFO')).includes(`cluster_known_nodes:${NODES}`)) {
      if (performance.now() > deadline) throw new Error('the nodes of the Redis cluster do not find each other');
      await pause();
    }
  }
  return {
    nodes,
    settings: { urls: nodes.slice(0, 2).map(({ options }) => `redis://127.0.0.1:${options.port}`), cluster: true, prefix: 'sandpool' },
    stop: async () => {
      for (const node of nodes) node.disconnect();
      await Promise.all(servers.map(end));
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** Ended with the tests' process, however that ends. */
const running = new Set<ChildProcess>();
process.once('exit', () => { for (const server of running) server.kill('SIGKILL'); });

const NODES = 3;
const SLOTS = 16_384;

interface Place { readonly folder: string; readonly port: number; readonly certificate: Certificate | undefined }

const configOf = ({ forgetful, config = [] }: RedisServerOptions, { folder, port, certificate }: Place): string => [
  'bind 127.0.0.1', `dir ${folder}`, 'save ""', `appendonly ${forgetful ? 'no' : 'yes'}`, 'appendfsync everysec', 'enable-debug-command yes',
  ...(certificate
    ? ['port 0', `tls-port ${port}`, `tls-cert-file ${certificate.certFile}`, `tls-key-file ${certificate.keyFile}`, 'tls-auth-clients no',
      'user default off', `user sandpool on >${PASSWORD} ~* &* +@all`]
    : [`port ${port}`]),
  ...config, '',
].join('\n');

const run = async (configFile: string, port: number): Promise<ChildProcess> => {
  if (PROGRAM === undefined) throw new Error(noRedis);
  const server = spawn(PROGRAM, [configFile], { argv0: 'redis-server', stdio: ['ignore', 'pipe', 'ignore'] });
  let printed = '';
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`Redis did not start on port ${port}: ${printed}`)), START_MS);
    const settle = (done: () => void) => (): void => {
      clearTimeout(timer);
      done();
    };
    server.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed = (printed + text).slice(-4_000);
      if (printed.includes('Ready to accept connections')) settle(resolve)();
    });
    server.once('exit', settle(() => reject(new Error(`Redis ended: ${printed}`)))).once('error', settle(() => reject(new Error(`no ${PROGRAM}`))));
  });
  running.add(server);
  server.once('exit', () => { running.delete(server); });
  return server;
};

const end = async (server: ChildProcess): Promise<void> => {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = new Promise((resolve) => { server.once('exit', resolve); });
  server.kill('SIGKILL');
  await ended;
};

const freePort = async (): Promise<number> => {
  const server = createServer();
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => { server.close(resolve); });
  return port;
};

const pause = (): Promise<void> => new Promise((resolve) => { setTimeout(resolve, 50); });
