import { readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { once } from 'node:events';
import { type Check, codeOf, type Finding, ok, problem, warning } from './finding.ts';

const ANSWER_MS = 3_000;
const MOST_BYTES = 65_536;

export const daemonHealth: Check = async ({ daemon, config: { dataDir } }) => {
  if (!daemon) return ok('daemon', `none runs on ${dataDir}`);
  const at = `${daemon.address} (pid ${daemon.pid})`;
  const health = await ask(`${daemon.address}/healthz`);
  if (health.status !== 200)
    return problem(
      'daemon',
      `${at} does not answer: ${health.status ?? health.text}`,
      'its log may show the cause; kill -9 loses nothing that it acknowledged, and sandpool ' +
        'serve starts it again',
    );
  const readiness = await ask(`${daemon.address}/readyz`);
  const { problems, warnings, isolation } = readinessIn(readiness.text);
  const findings: Finding[] = [...ok('daemon', at)];
  if (problems.length > 0 || readiness.status !== 200)
    findings.push(
      ...problem(
        'readiness',
        problems.join('; ') || `not ready: ${readiness.status ?? readiness.text}`,
        'free disk space if the disk is full; a spawner is started again within seconds, ' +
          'otherwise see ' +
          join(dataDir, 'spawner.err'),
      ),
    );
  else findings.push(...ok('spawner', 'ready'));
  if (warnings.length === 0) findings.push(...ok('isolation', isolation));
  for (const text of warnings)
    findings.push(
      ...warning(
        'readiness',
        text,
        'see docs/security.md about isolation, docs/fleet.md about promoted keys, and ' +
          'docs/operating.md about disk and clock, docs/observing.md about audit',
      ),
    );
  return findings;
};

/** The first key lives 90 days. */
export const firstKey: Check = async ({ daemon, config: { dataDir } }) => {
  if (!daemon) return [];
  let key: string;
  try {
    key = readFileSync(join(dataDir, 'keys/tenant.key'), 'utf8').trim();
  } catch (error) {
    return warning(
      'tenant key',
      `keys/tenant.key can’t be read: ${codeOf(error) ?? ''}`,
      'name a key of your own with --key-file FILE',
    );
  }
  const { status } = await ask(`${daemon.address}/sandboxpools?limit=1`, key);
  return status === 401
    ? problem(
        'tenant key',
        'the daemon does not know it, or it has expired',
        'restart the daemon: it creates a new key',
      )
    : ok('tenant key', 'good');
};

export const ports: Check = async ({ daemon, config, isGiven }) => {
  if (daemon) return [];
  const found = [await portCheck({ name: 'port', setting: 'listen', ...config.listen })];
  for (const [name, part] of OPTIONAL_PORTS) {
    const { listen } = config[part];
    if (listen === 'none') continue;
    const setting = `${part}.listen`;
    const isOptional = !(isGiven?.(setting) ?? true);
    found.push(await portCheck({ name, setting, isOptional, ...listen }));
  }
  return found.flat();
};

/** Optional unless their address was configured explicitly. */
const OPTIONAL_PORTS = [
  ['compatible API port', 'compatibleApi'],
  ['metrics port', 'metrics'],
] as const;

interface Port {
  readonly name: string;
  readonly setting: string;
  readonly host: string;
  readonly port: number;
  readonly isOptional?: boolean;
}

const portCheck = async ({
  name,
  setting,
  host,
  port,
  isOptional = false,
}: Port): Promise<readonly Finding[]> => {
  const at = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, 'listening');
    return ok(name, `${at} is free`);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EADDRINUSE')
      return (isOptional ? warning : problem)(
        name,
        `another process listens at ${at}${isOptional ? '; the daemon starts without it' : ''}`,
        `find it: ss -ltnp 'sport = :${port}'; or set ${setting} to another address`,
      );
    if (code === 'EACCES')
      return problem(
        name,
        `this user may not listen at ${at}`,
        `set ${setting} to a port above 1023`,
      );
    return problem(
      name,
      `nobody can listen at ${at}: ${code ?? String(error)}`,
      `set ${setting} to an address of this machine`,
    );
  } finally {
    if (server.listening) server.close();
  }
};

interface Reply {
  readonly status?: number;
  readonly text: string;
}

/** Accepts any certificate, since the address belongs to a known local process. */
export const ask = async (url: string, key?: string, mostBytes = MOST_BYTES): Promise<Reply> => {
  const options = {
    timeout: ANSWER_MS,
    rejectUnauthorized: false,
    signal: AbortSignal.timeout(ANSWER_MS),
    headers: key === undefined ? {} : { 'SERVICE-API-KEY': key },
  };
  try {
    const asking = (url.startsWith('https:') ? secureRequest : request)(url, options);
    asking.end();
    const [answer] = (await once(asking, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of answer.setEncoding('utf8') as AsyncIterable<string>)
      text = (text + chunk).slice(0, mostBytes);
    return { status: answer.statusCode ?? 0, text };
  } catch (error) {
    return {
      text:
        error instanceof Error && error.name === 'AbortError'
          ? `no answer in ${ANSWER_MS / 1_000} s`
          : (codeOf(error) ?? String(error)),
    };
  }
};

const readinessIn = (
  text: string,
): {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  readonly isolation: string;
} => {
  try {
    const body: unknown = JSON.parse(text);
    const field = (name: string): unknown =>
      typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined;
    const texts = (value: unknown): readonly string[] =>
      Array.isArray(value) ? value.map(String) : [];
    const isolation = field('isolation');
    return {
      problems: texts(field('problems')),
      warnings: texts(field('warnings')),
      isolation: typeof isolation === 'string' ? isolation : 'unknown',
    };
  } catch {
    return { problems: [], warnings: [], isolation: 'unknown' };
  }
};
