import type { Moment, Rewind, Sighting, StoreChange } from './history.ts';
import { changeOf } from './stored-objects.ts';
import { undoing } from './undoing.ts';

const SIGHT_EVERY_MS = 50;
/** Another look follows. */
const ANSWER_MS = 1_000;
/** The log depends on these requests. */
const PIECE_MS = 300_000;

/** etcd's JSON gateway, with its whole history. Revisions count on after a rewind. */
export class StoreLog {
  readonly sightings: Sighting[] = [];
  readonly rewinds: Rewind[] = [];
  readonly #changes: StoreChange[] = [];
  readonly #etcd: string;
  readonly #now: () => Moment;
  #running: Promise<void> | undefined;
  #pulling: Promise<void> = Promise.resolve();
  #over = false;
  #pulled = 0;
  #offset = 0;

  constructor(etcd: string, now: () => Moment) {
    this.#etcd = etcd;
    this.#now = now;
  }

  /** Samples the revision, so that changes can be placed in time. */
  start(): void {
    this.#over = false;
    this.#running = this.#sight();
  }

  async stop(): Promise<void> {
    this.#over = true;
    await this.#running;
  }

  /** Every relevant change up to this call. */
  async read(): Promise<readonly StoreChange[]> {
    await this.pull();
    return this.#changes;
  }

  /** Reads in pieces, since a log may span hours. */
  pull(): Promise<void> {
    const next = this.#pulling.then(() => this.#piece());
    this.#pulling = next.catch(() => undefined);
    return next;
  }

  /** Nobody may be able to write at that time. */
  async rewind(setBack: () => Promise<void>): Promise<void> {
    await this.pull();
    const lost = this.#pulled + this.#offset;
    await setBack();
    const {
      header: { revision },
    } = await this.#post('/v3/kv/range', { key: encoded('-') }, PIECE_MS);
    const standing = Number(revision);
    const rewind = { kept: standing + this.#offset, lost };
    this.rewinds.push(rewind);
    this.#changes.push(...undoing(this.#changes, rewind));
    this.#pulled = standing;
    this.#offset = lost + 1 - standing;
  }

  async #piece(): Promise<void> {
    const {
      header: { revision: last },
    } = await this.#post('/v3/kv/put', { key: encoded(LAST), value: encoded('') }, PIECE_MS);
    const from = {
      key: encoded(ROOT),
      range_end: encoded(`${ROOT.slice(0, -1)}0`),
      start_revision: String(this.#pulled + 1),
    };
    const body = JSON.stringify({ create_request: from });
    const answer = await fetch(`${this.#etcd}/v3/watch`, {
      method: 'POST',
      body,
      signal: AbortSignal.timeout(PIECE_MS),
    });
    if (!answer.body) throw new Error('etcd gave no log');
    const piece: StoreChange[] = [];
    for await (const line of linesOf(answer.body)) {
      const { result, error } = JSON.parse(line) as WatchLine;
      if (error || result?.canceled) throw new Error(`etcd ended its log: ${line.slice(0, 500)}`);
      for (const event of result?.events ?? []) {
        if (event.kv.mod_revision === last) {
          for (const change of piece) this.#changes.push(change);
          this.#pulled = Number(last);
          return;
        }
        const text = event.type === 'DELETE' ? undefined : decoded(event.kv.value ?? '');
        const change = changeOf(
          decoded(event.kv.key),
          Number(event.kv.mod_revision) + this.#offset,
          text,
        );
        if (change) piece.push(change);
      }
    }
    throw new Error('the log of etcd ended too early');
  }

  async #sight(): Promise<void> {
    while (!this.#over) {
      const [asked, offset] = [this.#now(), this.#offset];
      try {
        const { header } = await this.#post('/v3/kv/range', { key: encoded('-') });
        const revision = Number(header.revision) + offset;
        const before = this.sightings.at(-1)?.revision ?? 0;
        // A sample around a rewind belongs to neither count.
        if (offset === this.#offset && revision >= before)
          this.sightings.push({ asked, answered: this.#now(), revision });
      } catch {
        // Down or slow.
      }
      await new Promise((resolve) => {
        setTimeout(resolve, SIGHT_EVERY_MS);
      });
    }
  }

  async #post(
    path: string,
    body: object,
    withinMs = ANSWER_MS,
  ): Promise<{ readonly header: { readonly revision: string } }> {
    const answer = await fetch(this.#etcd + path, {
      method: 'POST',
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(withinMs),
    });
    if (!answer.ok) throw new Error(`etcd answered ${answer.status}`);
    return (await answer.json()) as { readonly header: { readonly revision: string } };
  }
}

interface WatchLine {
  readonly error?: unknown;
  readonly result?: {
    readonly canceled?: boolean;
    readonly events?: readonly {
      readonly type?: string;
      readonly kv: { readonly key: string; readonly value?: string; readonly mod_revision: string };
    }[];
  };
}

const ROOT = '/registry/';
/** The API server keeps nothing here. */
const LAST = `${ROOT}~last`;

const encoded = (text: string): string => Buffer.from(text).toString('base64');
const decoded = (text: string): string => Buffer.from(text, 'base64').toString('utf8');

async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  for await (const chunk of chunks) {
    const [first = '', ...more] = decoder.decode(chunk, { stream: true }).split('\n');
    parts.push(first);
    for (const next of more) {
      const line = parts.join('');
      parts = [next];
      if (line !== '') yield line;
    }
  }
}
