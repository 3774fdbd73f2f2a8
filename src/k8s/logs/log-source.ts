import { Pool } from 'undici';
import type { Query } from '../api/request-target.ts';
import { ApiUnreachable, refusedBy } from '../api/api-errors.ts';
import type { ClusterAccess } from '../api/cluster-access.ts';
import type { LogPiece } from './log-place.ts';
import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';
import { podPath } from '../sandboxes/pods/pod-resource.ts';
import { ByteQueue } from '../../lib/streams/byte-queue.ts';

export interface LogSourceTerms {
  readonly access: ClusterAccess;
  readonly agent: string;
}

const ANSWER_WITHIN_MS = 10_000;
const LONGEST_REFUSAL = 64 << 10;

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
   * Sets no deadline, since a followed log may be quiet for hours. Rejects with ApiRefused, or with
   * another error if the answer breaks off.
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
      if (text.length > LONGEST_REFUSAL) return new ApiUnreachable('the error body is too long');
    }
    return refusedBy(status, text, undefined);
  }
}

const NEWLINE = 10;
const SPACE = 32;
const LONGEST_TEXT = 64 << 10;
const LONGEST_TIME = '2026-01-31T12:00:00.000000000+02:00'.length;
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;

/**
 * Splits the answer of `GET …/log?timestamps=true`. Skips lines without a time, which the container
 * did not print.
 */
export class LogLines {
  readonly #rest = new ByteQueue();
  #restBytes = 0;
  /** Time of a line that arrives in parts; '' if the line is skipped. */
  #time: string | undefined;

  push(chunk: Buffer): readonly LogPiece[] {
    const pieces: LogPiece[] = [];
    let bytes = chunk;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE)) {
      this.#cut(this.#withRest(bytes.subarray(0, end)), true, pieces);
      bytes = bytes.subarray(end + 1);
    }
    if (this.#restBytes + bytes.length >= LONGEST_TEXT)
      this.#cut(this.#withRest(bytes), false, pieces);
    else this.#keep(bytes);
    return pieces;
  }

  #keep(bytes: Buffer): void {
    this.#rest.push(bytes);
    this.#restBytes += bytes.length;
  }

  #withRest(bytes: Buffer): Buffer {
    if (this.#restBytes === 0) return bytes;
    this.#rest.push(bytes);
    this.#restBytes = 0;
    return this.#rest.takeAll();
  }

  #cut(bytes: Buffer, isWhole: boolean, pieces: LogPiece[]): void {
    let text = bytes;
    if (this.#time === undefined) {
      const space = bytes.subarray(0, LONGEST_TIME + 1).indexOf(SPACE);
      this.#time = space < 0 ? '' : utcOf(bytes.toString('latin1', 0, space));
      text = bytes.subarray(space + 1);
    }
    if (this.#time !== '') pieces.push({ time: this.#time, text, partial: !isWhole });
    if (isWhole) this.#time = undefined;
  }
}

const utcOf = (text: string): string => {
  const [, seconds, fraction = '', zone] = TIME.exec(text) ?? [];
  if (seconds === undefined || zone === undefined) return '';
  const utc =
    zone === 'Z' ? seconds : new Date(`${seconds}${zone}`).toISOString().slice(0, seconds.length);
  return `${utc}.${fraction.padEnd(9, '0')}Z`;
};
