import type { HttpAnswer, HttpClient } from '../http-client.ts';
import type { Answer, Asked, Call, Moment } from './history.ts';

/** Longer than any request of the load may take: past it the answer is unknown. */
const ANSWER_MS = 8_000;

/** Where one replica is reached, by each user's client. */
export interface Reached {
  client(user: string): HttpClient;
}

/** Sends requests and notes them, by one monotonic clock. */
export class Recorder {
  readonly calls: Call[] = [];
  /** Answers that no replica may give, such as one that its document does not have. */
  readonly strange: string[] = [];
  readonly #replicas: readonly Reached[];
  readonly #now: () => Moment;

  constructor(replicas: readonly Reached[], now: () => Moment) {
    [this.#replicas, this.#now] = [replicas, now];
  }

  /** The answer; undefined where it is unknown. */
  async send(user: string, replica: number, asked: Asked, more: { readonly replicas?: number } = {}): Promise<HttpAnswer | undefined> {
    const invoked = this.#now();
    let answer: HttpAnswer | undefined;
    try {
      const client = this.#replicas[replica]?.client(user);
      if (!client) throw new Error(`there is no replica ${replica}`);
      answer = await client.send(...requestOf(asked, more, AbortSignal.timeout(ANSWER_MS)));
    } catch (error) {
      if (!isCutOff(error)) this.strange.push(`${JSON.stringify(asked)} at replica ${replica}: ${String(error).slice(0, 1_000)}`);
    }
    this.calls.push({ user, replica, asked, invoked, completed: this.#now(), ...(answer ? { answer: answerOf(answer) } : {}) });
    return answer;
  }
}

type Request = Parameters<HttpClient['send']>;

const requestOf = (asked: Asked, { replicas }: { readonly replicas?: number }, signal: AbortSignal): Request => {
  switch (asked.what) {
    case 'claim': return ['POST', '/sandboxes', { body: { poolName: asked.pool }, signal, ...(asked.key === undefined ? {} : { headers: { 'Idempotency-Key': asked.key } }) }];
    case 'get': return ['GET', `/sandboxes/${asked.id}`, { signal }];
    case 'exec': return ['POST', `/sandboxes/${asked.id}/exec`, { body: { command: `echo ${asked.id}`, timeoutSeconds: 5 }, signal }];
    case 'delete': return ['DELETE', `/sandboxes/${asked.id}`, { signal }];
    case 'create-pool': return ['POST', '/sandboxpools', { body: { name: asked.pool, templateName: POOL_TEMPLATE, replicas: replicas ?? 1 }, signal }];
    case 'delete-pool': return ['DELETE', `/sandboxpools/${asked.pool}`, { signal }];
    case 'get-pool': return ['GET', `/sandboxpools/${asked.pool}`, { signal }];
  }
};

export const POOL_TEMPLATE = 'chaos';

const answerOf = ({ status, json }: HttpAnswer): Answer => {
  const id = json.sandbox?.['sandboxId'];
  const shows = json.sandbox?.['status'] ?? phaseOf(json.template);
  return { status, ...(json.errorCode === undefined ? {} : { errorCode: json.errorCode }), ...(id === undefined ? {} : { id }), ...(shows === undefined ? {} : { shows }) };
};

const phaseOf = (template: Readonly<Record<string, unknown>> | undefined): string | undefined => {
  const { status } = (template ?? {}) as { readonly status?: { readonly phase?: string } };
  return status?.phase;
};

/** The link failed, or the time was over. */
const isCutOff = (error: unknown): boolean => error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError' || ('code' in error && typeof error.code === 'string' && /^E[A-Z]+$/.test(error.code)));
