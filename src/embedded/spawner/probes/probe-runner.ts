import type { Socket } from 'node:net';
import { FairSlots } from '../../../lib/fair-slots.ts';
import type { ProbeAction, ReadinessProbe } from '../../../model/templates/readiness-probe.ts';
import { Execution } from '../execution.ts';
import type { Agents } from '../agents/agents.ts';
import type { JoinPlace } from '../sandbox/join-place.ts';
import type { LauncherPool } from '../launcher-pool.ts';
import { dialPort } from '../ports/port-dialling.ts';

const AT_ONCE = 32;
const AT_ONCE_OF_TENANT = 8;
/** Each probe of an instance is queued at most once. */
const MOST_WAITING = 65_536;
const MOST_WAITING_OF_TENANT = 16_384;
const LONGEST_MS = 30_000;
/** Kept for the failure message. */
const SAID_BYTES = 200;

export interface ProbeRunnerDeps {
  readonly forwarders: Agents;
  readonly launchers: LauncherPool;
  readonly placeOf: (id: string) => JoinPlace | undefined;
  /** 30 s by default. */
  readonly longestMs?: number;
}

/** Runs commands inside the sandbox, and connects to its own loopback only. */
export class ProbeRunner {
  readonly #deps: ProbeRunnerDeps;
  readonly #turns = new FairSlots({
    most: () => AT_ONCE,
    mostOfTenant: () => AT_ONCE_OF_TENANT,
    mostWaiting: MOST_WAITING,
    mostWaitingOfTenant: MOST_WAITING_OF_TENANT,
  });

  constructor(deps: ProbeRunnerDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves with the reason of a failure. Never rejects. The timeout starts when the probe leaves
   * the queue.
   */
  async run(id: string, tenant: string, probe: ReadinessProbe): Promise<string | undefined> {
    const turn = await this.#turn(tenant);
    if (!turn) return 'too many probes are waiting';
    const { action } = probe;
    const timeoutMs = Math.min(probe.timeoutMs, this.#deps.longestMs ?? LONGEST_MS);
    try {
      return action.kind === 'exec'
        ? await this.#exec(id, action.argv, timeoutMs)
        : await this.#reach(id, action, timeoutMs);
    } catch (error) {
      return error instanceof Error && error.name === 'TimeoutError'
        ? tooLong(timeoutMs)
        : error instanceof Error
          ? error.message
          : String(error);
    } finally {
      turn.release();
    }
  }

  async #turn(tenant: string): Promise<{ readonly release: () => void } | undefined> {
    return await new Promise((resolve) => {
      if (!this.#turns.request(tenant, (release) => resolve({ release }))) resolve(undefined);
    });
  }

  #exec(id: string, argv: readonly string[], timeoutMs: number): Promise<string | undefined> {
    const place = this.#deps.placeOf(id);
    if (!place) return Promise.resolve(NOT_RUNNING);
    return new Promise((resolve) => {
      let said = '';
      new Execution(
        this.#deps.launchers,
        { place, order: { argv, timeoutMs, outputLimit: SAID_BYTES } },
        {
          output: (_kind, bytes) => {
            said = (said + String(bytes)).slice(0, SAID_BYTES);
            return true;
          },
          exited: ({ exitCode, timedOut }) =>
            resolve(
              timedOut
                ? tooLong(timeoutMs)
                : exitCode === 0
                  ? undefined
                  : `${argv[0] ?? ''} ended with ` +
                    `${exitCode}${said.trim() === '' ? '' : `: ${said.trim()}`}`,
            ),
          failed: resolve,
        },
      );
    });
  }

  async #reach(
    id: string,
    action: Exclude<ProbeAction, { kind: 'exec' }>,
    timeoutMs: number,
  ): Promise<string | undefined> {
    const signal = AbortSignal.timeout(timeoutMs);
    const path = await this.#deps.forwarders.socketOf(id);
    const socket = await dialPort(path, action.port, signal);
    if (!socket) return NOT_RUNNING;
    if (action.kind === 'http') return await get(socket, action, signal);
    socket.destroy();
    return undefined;
  }
}

const NOT_RUNNING = 'it is not running';
const tooLong = (timeoutMs: number): string => `it took longer than ${timeoutMs / 1_000} s`;

const MAX_HEADER_BYTES = 16_384;

const get = async (
  socket: Socket,
  { port, path, secure, headers }: Extract<ProbeAction, { kind: 'http' }>,
  signal: AbortSignal,
): Promise<string | undefined> => {
  // A spawner without HTTP probes does not pay for these modules.
  const [{ request }, { connect }] = await Promise.all([import('node:http'), import('node:tls')]);
  const stream = secure
    ? connect({ socket, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
    : socket;
  try {
    const status = await new Promise<number>((resolve, reject) => {
      const abort = (): void => reject(signal.reason);
      if (signal.aborted) return abort();
      signal.addEventListener('abort', abort, { once: true });
      const given = {
        Host: `localhost:${port}`,
        'User-Agent': 'sandpool-probe',
        Accept: '*/*',
        Connection: 'close',
        ...Object.fromEntries(headers),
      };
      const asked = request({
        createConnection: () => stream,
        path,
        headers: given,
        maxHeaderSize: MAX_HEADER_BYTES,
      });
      asked
        .on('error', reject)
        .once('response', (answer) => resolve(answer.statusCode ?? 0))
        .end();
    });
    return status >= 200 && status < 400 ? undefined : `GET ${path} answered ${status}`;
  } catch (error) {
    if (error instanceof Error && 'code' in error && typeof error.code === 'string')
      return `GET ${path} got no answer (${error.code})`;
    throw error;
  } finally {
    stream.on('error', () => {}).destroy();
    socket.on('error', () => {}).destroy();
  }
};
