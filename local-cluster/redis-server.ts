import { spawn, type ChildProcess } from 'node:child_process';
import { cpSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Redis } from 'ioredis';
import type { RedisSettings } from '../src/redis/settings.ts';
import { aCertificate, type Certificate } from './a-certificate.ts';
import { freePorts } from './control-plane/free-ports.ts';
import { eventually, NEVER_COMES_MS } from './eventually.ts';
import { KeptOutput } from './kept-output.ts';
import { rememberChild } from './started-processes.ts';
import { markOf, watchedFolder } from './watched-folder.ts';

/** Debian's redis-server is a link to redis-check-rdb, which goes by its name. */
const PROGRAM = [
  '/usr/bin/redis-server',
  '/usr/local/bin/redis-server',
  '/usr/bin/redis-check-rdb',
].find((path) => existsSync(path));
const PASSWORD = 'only-for-tests';
const KEPT_OUTPUT = 2 ** 16;

export const noRedis =
  PROGRAM === undefined ? 'needs Redis: script/bootstrap --tests installs it' : undefined;

export interface RedisServerOptions {
  /** The user `sandpool` has a password. */
  readonly secure?: boolean;
  /** Without an append-only file. */
  readonly forgetful?: boolean;
  /**
   * Each second, as in the chart. Redis then answers before it has written, and a kill -9 loses
   * that.
   */
  readonly syncs?: boolean;
  /** For redis.conf. */
  readonly config?: readonly string[];
}

/** With an append-only file, on the loopback. */
export interface RedisServer {
  readonly settings: RedisSettings;
  readonly client: Redis;
  /** By kill -9; resolves after its end. */
  kill(): Promise<void>;
  /** On the same port and files. */
  restart(): Promise<void>;
  keepCopy(): void;
  /** Later writes are lost. */
  restartFromCopy(): Promise<void>;
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  stop(): Promise<void>;
}

export const startRedis = async (options: RedisServerOptions = {}): Promise<RedisServer> => {
  const folder = watchedFolder('redis');
  const certificate = options.secure ? aCertificate() : undefined;
  const [port = 0] = await freePorts(1);
  const configFile = join(folder, 'redis.conf');
  writeFileSync(configFile, configOf(options, { folder, port, certificate }));
  let server = await run(configFile, port);
  const settings: RedisSettings = {
    urls: [`${certificate ? 'rediss' : 'redis'}://127.0.0.1:${port}`],
    cluster: false,
    prefix: 'sandpool',
    ...(certificate ? { ca: certificate.cert, username: 'sandpool', password: PASSWORD } : {}),
  };
  const client = new Redis(port, '127.0.0.1', {
    ...(certificate
      ? { tls: { ca: certificate.cert }, username: 'sandpool', password: PASSWORD }
      : {}),
    retryStrategy: () => 50,
    maxRetriesPerRequest: null,
  });
  client.on('error', () => undefined);
  const [written, copy] = [join(folder, 'appendonlydir'), join(folder, 'copy')];
  const restart = async (): Promise<void> => {
    server = await run(configFile, port);
  };
  return {
    settings,
    client,
    restart,
    kill: () => end(server),
    keepCopy: () => {
      rmSync(copy, { recursive: true, force: true });
      cpSync(written, copy, { recursive: true });
    },
    restartFromCopy: async () => {
      rmSync(written, { recursive: true, force: true });
      cpSync(copy, written, { recursive: true });
      await restart();
    },
    signal: (name) => {
      server.kill(name);
    },
    stop: async () => {
      client.disconnect();
      await end(server);
      for (const path of [folder, certificate?.folder])
        if (path !== undefined) rmSync(path, { recursive: true, force: true });
    },
  };
};

export interface RedisCluster {
  readonly settings: RedisSettings;
  readonly nodes: readonly Redis[];
  stop(): Promise<void>;
}

/** They share the slots. */
export const startRedisCluster = async (): Promise<RedisCluster> => {
  const folders: string[] = [];
  const servers: ChildProcess[] = [];
  const nodes: Redis[] = [];
  for (let n = 0; n < NODES; n++) {
    const folder = watchedFolder('redis');
    const [port = 0, bus = 0] = await freePorts(2);
    folders.push(folder);
    const configFile = join(folder, 'redis.conf');
    writeFileSync(
      configFile,
      configOf(
        {
          config: [
            'cluster-enabled yes',
            `cluster-port ${bus}`,
            'cluster-config-file nodes.conf',
            'cluster-node-timeout 2000',
          ],
        },
        { folder, port, certificate: undefined },
      ),
    );
    servers.push(await run(configFile, port));
    nodes.push(
      new Redis(port, '127.0.0.1', { maxRetriesPerRequest: null }).on('error', () => undefined),
    );
    await nodes[0]?.call('CLUSTER', 'MEET', '127.0.0.1', String(port), String(bus));
  }
  for (const [n, node] of nodes.entries()) {
    const [first, last] = [
      Math.ceil((n * SLOTS) / NODES),
      Math.ceil(((n + 1) * SLOTS) / NODES) - 1,
    ];
    await node.call('CLUSTER', 'ADDSLOTSRANGE', String(first), String(last));
  }
  for (const node of nodes) {
    let info = '';
    await eventually(
      async () => {
        info = String(await node.call('CLUSTER', 'INFO'));
        return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${NODES}`);
      },
      'the nodes of the Redis cluster find each other',
      () => info,
    );
  }
  return {
    nodes,
    settings: {
      urls: nodes.slice(0, 2).map(({ options }) => `redis://127.0.0.1:${options.port}`),
      cluster: true,
      prefix: 'sandpool',
    },
    stop: async () => {
      for (const node of nodes) node.disconnect();
      await Promise.all(servers.map(end));
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    },
  };
};

const NODES = 3;
const SLOTS = 16_384;

interface Place {
  readonly folder: string;
  readonly port: number;
  readonly certificate: Certificate | undefined;
}

const configOf = (
  { forgetful, syncs, config = [] }: RedisServerOptions,
  { folder, port, certificate }: Place,
): string =>
  [
    'bind 127.0.0.1',
    `dir ${folder}`,
    'save ""',
    `appendonly ${forgetful ? 'no' : 'yes'}`,
    `appendfsync ${syncs ? 'everysec' : 'no'}`,
    'enable-debug-command yes',
    ...(certificate
      ? [
          'port 0',
          `tls-port ${port}`,
          `tls-cert-file ${certificate.certFile}`,
          `tls-key-file ${certificate.keyFile}`,
          'tls-auth-clients no',
          'user default off',
          `user sandpool on >${PASSWORD} ~* &* +@all`,
        ]
      : [`port ${port}`]),
    ...config,
    '',
  ].join('\n');

const run = async (configFile: string, port: number): Promise<ChildProcess> => {
  if (PROGRAM === undefined) throw new Error(noRedis);
  const server = spawn(PROGRAM, [configFile], {
    argv0: 'redis-server',
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: markOf(dirname(configFile)),
  });
  const printed = KeptOutput.of(KEPT_OUTPUT, server.stdout);
  rememberChild(`Redis on port ${port}`, server, () => printed.text);
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`Redis did not start on port ${port}: ${printed.text}`)),
      NEVER_COMES_MS,
    );
    const settle = (done: () => void) => (): void => {
      clearTimeout(timer);
      done();
    };
    server.stdout.on('data', () => {
      if (printed.text.includes('Ready to accept connections')) settle(resolve)();
    });
    server
      .once(
        'exit',
        settle(() => reject(new Error(`Redis ended: ${printed.text}`))),
      )
      .once(
        'error',
        settle(() => reject(new Error(`no ${PROGRAM}`))),
      );
  });
  return server;
};

const end = async (server: ChildProcess): Promise<void> => {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = new Promise((resolve) => {
    server.once('exit', resolve);
  });
  server.kill('SIGKILL');
  await ended;
};
