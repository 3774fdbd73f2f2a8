import { request } from 'node:http';
import type { Duplex } from 'node:stream';
import { connect } from 'node:tls';
import {
  ContainerGone,
  InstanceGone,
  PortUnreachable,
  type ExecOutcome,
  type ExecRequest,
  type PortConnection,
  type ProbeOutcome,
} from '../../../contracts/sandbox-driver.ts';
import type { ApiClient } from '../../api/api-calls.ts';
import { isAbsent } from '../../api/api-errors.ts';
import { cleaned } from '../cleaned-message.ts';
import { unjoinable, type PodTarget } from './pod-presence.ts';
import { endpointProbeOf, podPath } from './pod-resource.ts';

export interface PodProbesDeps {
  readonly api: ApiClient;
  readonly streams: {
    exec(pod: PodTarget, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome>;
    dial(pod: PodTarget, port: number, signal: AbortSignal): Promise<PortConnection>;
  };
}

interface StoredProbe {
  readonly exec?: { readonly command: readonly string[] };
  readonly httpGet?: {
    readonly port: number;
    readonly path?: string;
    readonly scheme?: string;
    readonly httpHeaders?: readonly { readonly name: string; readonly value: string }[];
  };
  readonly tcpSocket?: { readonly port: number };
  readonly timeoutSeconds?: number;
}
interface ProbedPod {
  readonly metadata: {
    readonly uid: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly containers: readonly {
      readonly name: string;
      readonly readinessProbe?: StoredProbe;
    }[];
  };
}

const KEPT_OUTPUT = 512;

/**
 * Runs commands by exec, the others by a port-forward into the Pod with this uid. Never dials a
 * network address.
 */
export class PodProbes {
  readonly #deps: PodProbesDeps;
  /** By uid; concurrent callers share a run. */
  readonly #running = new Map<string, Promise<readonly ProbeOutcome[]>>();

  constructor(deps: PodProbesDeps) {
    this.#deps = deps;
  }

  run(target: PodTarget): Promise<readonly ProbeOutcome[]> {
    const known = this.#running.get(target.uid);
    if (known) return known;
    const running = this.#all(target).finally(() => {
      this.#running.delete(target.uid);
    });
    this.#running.set(target.uid, running);
    return running;
  }

  async #all(target: PodTarget): Promise<readonly ProbeOutcome[]> {
    const found = await this.#deps.api
      .get(podPath(target.namespace, target.name))
      .catch((error: unknown) => {
        throw isAbsent(error, 'pods')
          ? new InstanceGone('the Pod does not exist', { cause: error })
          : unjoinable(error);
      });
    const { metadata, spec } = found as ProbedPod;
    if (metadata.uid !== target.uid) throw new InstanceGone('another Pod has its name now');
    return await Promise.all(
      spec.containers.flatMap(({ name, readinessProbe }) => {
        if (!readinessProbe) return [];
        const endpoint = endpointProbeOf(metadata.annotations, name);
        const running = this.#one({ ...target, container: name }, readinessProbe).catch(
          (error: unknown) => {
            if (error instanceof ContainerGone) return error.message;
            throw error;
          },
        );
        return [
          running.then((failure) => ({
            ...(endpoint === undefined ? {} : { endpoint }),
            ...(failure === undefined ? {} : { failure }),
          })),
        ];
      }),
    );
  }

  async #one(
    target: PodTarget,
    { exec, httpGet, tcpSocket, timeoutSeconds = 1 }: StoredProbe,
  ): Promise<string | undefined> {
    if (exec) return await this.#command(target, exec.command, timeoutSeconds);
    const asked = httpGet ?? tcpSocket;
    if (!asked) return undefined;
    const signal = AbortSignal.timeout(timeoutSeconds * 1_000);
    let connection: PortConnection | undefined;
    try {
      connection = await this.#deps.streams.dial(target, asked.port, signal);
      await connection.taken;
      return httpGet && (await answered(connection, httpGet, signal));
    } catch (error) {
      if (signal.aborted) return lateAfter(timeoutSeconds);
      if (error instanceof PortUnreachable || error instanceof NoAnswer) return error.message;
      throw error;
    } finally {
      connection?.destroy();
    }
  }

  async #command(
    target: PodTarget,
    argv: readonly string[],
    timeoutSeconds: number,
  ): Promise<string | undefined> {
    const { exitCode, timedOut, stdout, stderr } = await this.#deps.streams.exec(
      target,
      { argv, timeoutMs: timeoutSeconds * 1_000, outputLimit: KEPT_OUTPUT },
      NEVER,
    );
    if (timedOut) return lateAfter(timeoutSeconds);
    if (exitCode === 0) return undefined;
    const words = (String(stderr).trim() || String(stdout).trim()).slice(0, KEPT_OUTPUT);
    return `${argv[0] ?? ''} ended with ${exitCode}${words === '' ? '' : `: ${words}`}`;
  }
}

const lateAfter = (seconds: number): string => `it took longer than ${seconds} s`;

const NEVER = new AbortController().signal;

class NoAnswer extends Error {}

/**
 * Undefined for a status of 200 to 399. Rejects with NoAnswer, and with the error of an abort.
 * Ignores certificates of https, as kubelets do.
 */
const answered = (
  connection: Duplex,
  { port, path = '/', scheme, httpHeaders = [] }: NonNullable<StoredProbe['httpGet']>,
  signal: AbortSignal,
): Promise<string | undefined> =>
  new Promise((resolve, reject) => {
    const failed = (error: Error): void => {
      reject(
        signal.aborted
          ? error
          : new NoAnswer(`GET ${path}: ${cleaned(error.message)}`, { cause: error }),
      );
    };
    const stream =
      scheme === 'HTTPS' ? connect({ socket: connection, rejectUnauthorized: false }) : connection;
    stream.on('error', failed);
    const headers = {
      host: `127.0.0.1:${port}`,
      connection: 'close',
      ...Object.fromEntries(httpHeaders.map(({ name, value }) => [name.toLowerCase(), value])),
    };
    const asking = request({
      createConnection: () => stream,
      method: 'GET',
      path,
      headers,
      signal,
    });
    asking
      .on('error', failed)
      .on('response', (response) => {
        const status = response.statusCode ?? 0;
        response.resume().on('error', () => undefined); // only the status counts
        resolve(status >= 200 && status < 400 ? undefined : `GET ${path} answered ${status}`);
      })
      .end();
  });
