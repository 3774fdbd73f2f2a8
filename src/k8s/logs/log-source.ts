import { Pool } from 'undici';
import type { Query } from '../api/request-target.ts';
import { ApiUnreachable, refusedBy } from '../api/api-errors.ts';
import type { ClusterAccess } from '../api/cluster-access.ts';
import { LogLines } from './log-lines.ts';
import type { LogPiece } from './log-place.ts';
import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';
import { podPath } from '../sandboxes/pods/pod-resource.ts';

export interface LogSourceTerms {
  readonly access: ClusterAccess;
  readonly agent: string;
}

const ANSWER_WITHIN_MS = 10_000;
const LONGEST_REFUSAL = 64 << 10;

/**
 * Reads what kubelets have of containers' output, over connections of its own: as many as are read
 * at a time.
 */
export class LogSource {
  readonly #access: ClusterAccess;
  readonly #agent: string;
  readonly #pool: Pool;

  constructor({ access, agent }: LogSourceTerms) {
    this.#access = access;
    this.#agent = agent;
    this.#pool = new Pool(access.server.origin, {
      connections: null,
      pipelining: 1,
      headersTimeout: ANSWER_WITHIN_MS,
      bodyTimeout: 0,
      connect: { ...access.tls, timeout: ANSWER_WITHIN_MS },
    });
  }

  /**
   * Reads no faster than it is asked, until the answer ends or the signal aborts: it has no
   * deadline of its own, as a followed log may be quiet for hours. Rejects with ApiRefused, or with
   * another error where nothing is answered or the answer breaks off.
   */
  async *read(
    target: PodTarget,
    query: Query,
    signal: AbortSignal,
  ): AsyncGenerator<readonly LogPiece[], void, undefined> {
    const parameters = new URLSearchParams({ container: target.container, timestamps: 'true' });
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) parameters.set(name, String(value));
    const authorization = this.#access.authorization();
    const base = this.#access.server.pathname.replace(/\/$/, '');
    const { statusCode, body } = await this.#pool.request({
      method: 'GET',
      path: `${base}${podPath(target.namespace, target.name)}/log?${parameters.toString()}`,
      signal,
      headers: {
        'user-agent': this.#agent,
        ...(authorization === undefined ? {} : { authorization }),
      },
    });
    try {
      if (statusCode >= 400) throw await this.#refusal(statusCode, body);
      const lines = new LogLines();
      for await (const chunk of body as AsyncIterable<Buffer>) {
        const pieces = lines.push(chunk);
        if (pieces.length > 0) yield pieces;
      }
    } finally {
      body.destroy();
    }
  }

  async stop(): Promise<void> {
    await this.#pool.destroy();
  }

  async #refusal(status: number, body: AsyncIterable<unknown>): Promise<Error> {
    if (status === 401) this.#access.rejected();
    let text = '';
    for await (const chunk of body) {
      text += String(chunk);
      if (text.length > LONGEST_REFUSAL) return new ApiUnreachable('a refusal that has no end');
    }
    return refusedBy(status, text, undefined);
  }
}
