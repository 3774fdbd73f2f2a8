import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { openTerminal, type TerminalConnection } from '../../src/cli/client/terminal-connection.ts';
import { pause } from '../process-facts.ts';

export interface NoisyTerms {
  readonly port: number;
  /** For E2B's API. */
  readonly compatiblePort?: number;
  readonly key: string;
  /** Its sandboxes do nothing. */
  readonly template: string;
  /** For inline templates. */
  readonly image: string;
}

export interface NoisyAsk {
  readonly method: string;
  readonly path: string;
  /** JSON, unless it is bytes. */
  readonly body?: object;
  readonly port?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

const MOST_CONNECTIONS = 2_048;
/** A refused client asks again, but not as fast as a machine can. */
const REFUSED_REST_MS = 20;
const PREPARED_WITHIN_MS = 240_000;
const TERMINAL_WITHIN_MS = 10_000;
/** The rest is read and dropped. */
const KEPT_CHARACTERS = 65_536;

export class NoisyTenant {
  readonly terms: NoisyTerms;
  /** 0: no answer. */
  readonly statuses: Record<string, number> = {};
  readonly #agent = new Agent({ keepAlive: true, maxSockets: MOST_CONNECTIONS });

  constructor(terms: NoisyTerms) {
    this.terms = terms;
  }

  /** Status 0 if the connection breaks, or the signal ends it. */
  async ask(ask: NoisyAsk, signal?: AbortSignal): Promise<Answer> {
    const answer = await this.#exchange(ask, signal).catch(() => ({ status: 0, body: '' }));
    if (answer.status !== 0 || signal?.aborted !== true) this.#count(String(answer.status));
    return answer;
  }

  /** Must succeed. Repeats while the daemon does not know yet what was just made. */
  async expect(ask: NoisyAsk): Promise<string> {
    const deadline = performance.now() + PREPARED_WITHIN_MS;
    for (;;) {
      const { status, body } = await this.#exchange(ask);
      if (status < 300) return body;
      if (![404, 409, 429, 503].includes(status) || performance.now() > deadline)
        throw new Error(
          `${ask.method} ${ask.path} was answered with ${status}: ${body.slice(0, 300)}`,
        );
      await pause(100);
    }
  }

  /** This many at a time, until the signal. */
  async keepAsking(
    next: (n: number) => NoisyAsk | undefined,
    { atOnce, signal }: { readonly atOnce: number; readonly signal: AbortSignal },
  ): Promise<void> {
    let n = 0;
    await Promise.all(
      Array.from({ length: atOnce }, async () => {
        while (!signal.aborted) {
          const ask = next(n++);
          if (!ask) return;
          const { status } = await this.ask(ask, signal);
          if (status < 200 || status >= 300) await pause(REFUSED_REST_MS);
        }
      }),
    );
  }

  /** By the stored template, unless `main` is given. */
  async makePool(name: string, replicas: number, main?: object): Promise<void> {
    const source =
      main === undefined
        ? { templateName: this.terms.template }
        : { template: { containers: [{ name: 'main', image: this.terms.image, ...main }] } };
    await this.expect({
      method: 'POST',
      path: '/sandboxpools',
      body: { name, replicas, ...source },
    });
  }

  async scale(name: string, replicas: number): Promise<void> {
    await this.expect({ method: 'PUT', path: `/sandboxpools/${name}`, body: { replicas } });
  }

  /** 0 waits until there are none. */
  async untilIdle(name: string, count: number): Promise<void> {
    const deadline = performance.now() + PREPARED_WITHIN_MS;
    for (;;) {
      const {
        template: { status },
      } = JSON.parse(await this.expect({ method: 'GET', path: `/sandboxpools/${name}` })) as {
        readonly template: { readonly status: { readonly idleReplicas: number } };
      };
      if (count === 0 ? status.idleReplicas === 0 : status.idleReplicas >= count) return;
      if (performance.now() > deadline)
        throw new Error(
          `the pool ${name} of the noisy tenant is not as it should be: ${JSON.stringify(status)}`,
        );
      await pause(50);
    }
  }

  /** From a pool of their own. */
  async claimed(count: number): Promise<readonly string[]> {
    const name = `claimed-${randomUUID().slice(0, 8)}`;
    await this.makePool(name, count);
    await this.untilIdle(name, count);
    const ids: string[] = [];
    for (let n = 0; n < count; n += 1) {
      const body = await this.expect({
        method: 'POST',
        path: '/sandboxes',
        body: { poolName: name },
      });
      ids.push(
        (JSON.parse(body) as { readonly sandbox: { readonly sandboxId: string } }).sandbox
          .sandboxId,
      );
    }
    await this.scale(name, 0);
    return ids;
  }

  /** Undefined if it was refused, which is counted. */
  async terminal(sandboxId: string): Promise<TerminalConnection | undefined> {
    const { status, body } = await this.ask({
      method: 'POST',
      path: `/sandboxes/${sandboxId}/exec-token`,
      body: {},
    });
    if (status !== 200) return undefined;
    const { token } = JSON.parse(body) as { readonly token: string };
    const server = new URL(`http://127.0.0.1:${this.terms.port}`);
    try {
      const opened = await openTerminal({
        server,
        sandboxId,
        token,
        cols: 80,
        rows: 24,
        deadlineMs: TERMINAL_WITHIN_MS,
      });
      opened.stream.on('error', () => undefined).resume();
      this.#count('terminal');
      return opened;
    } catch {
      this.#count('no terminal');
      return undefined;
    }
  }

  #count(what: string): void {
    this.statuses[what] = (this.statuses[what] ?? 0) + 1;
  }

  #exchange(ask: NoisyAsk, signal?: AbortSignal): Promise<Answer> {
    const { method, path, body, port = this.terms.port, headers = {} } = ask;
    const text = body === undefined || body instanceof Buffer ? body : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          host: '127.0.0.1',
          port,
          method,
          path,
          agent: this.#agent,
          signal,
          headers: {
            'SERVICE-API-KEY': this.terms.key,
            ...(text === undefined
              ? {}
              : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }),
            ...headers,
          },
        },
        (response) => {
          let kept = '';
          response.setEncoding('latin1');
          response.on('data', (chunk: string) => {
            if (kept.length < KEPT_CHARACTERS) kept += chunk;
          });
          response.on('end', () => resolve({ status: response.statusCode ?? 0, body: kept }));
          response.on('error', reject);
        },
      );
      sent.on('error', reject);
      sent.end(text);
    });
  }
}
