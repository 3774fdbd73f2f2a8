import type { ServerResponse } from 'node:http';
import { json, type SeenRequest } from './a-fake-api-server.ts';

export interface FakeObject {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
  readonly value: number;
}

/**
 * One collection as an API server shows it: pages, watches from a revision, bookmarks on demand,
 * and faults as a test orders them.
 */
export class FakeCollection {
  readonly objects = new Map<string, FakeObject>();
  /** Each with the revision after which it is told. */
  readonly watchers = new Map<ServerResponse, number>();
  #events: { readonly type: string; readonly object: FakeObject }[] = [];
  #withheld: { readonly type: string; readonly object: FakeObject }[] | undefined;
  #revision = 100;
  #uids = 0;
  lists = 0;
  watches = 0;
  /** Of the last watch. */
  timeoutSeconds = 0;
  /** Takes over a request where it answers true. */
  instead: (request: SeenRequest, response: ServerResponse) => boolean = () => false;

  get revision(): string {
    return String(this.#revision);
  }

  answer(request: SeenRequest, response: ServerResponse): void {
    const query = new URL(request.url, 'http://fake').searchParams;
    const isWatch = query.get('watch') === 'true';
    if (isWatch) this.watches += 1;
    else this.lists += 1;
    if (this.instead(request, response)) return;
    if (isWatch) this.#watch(query, response);
    else this.#list(query, response);
  }

  put(name: string, value: number): FakeObject {
    const known = this.objects.get(name);
    const object = {
      metadata: {
        name,
        uid: known?.metadata.uid ?? `u${++this.#uids}`,
        resourceVersion: String(++this.#revision),
      },
      value,
    };
    this.objects.set(name, object);
    this.#tell(known ? 'MODIFIED' : 'ADDED', object);
    return object;
  }

  remove(name: string): void {
    const known = this.objects.get(name);
    if (!known) return;
    this.objects.delete(name);
    this.#tell('DELETED', {
      ...known,
      metadata: { ...known.metadata, resourceVersion: String(++this.#revision) },
    });
  }

  /**
   * The store is an older copy of itself, as it was at the revision, of which these are left; its
   * watches are told nothing of that.
   */
  restore(revision: number, names: readonly string[]): void {
    this.#revision = revision;
    this.#events = [];
    for (const name of [...this.objects.keys()])
      if (!names.includes(name)) this.objects.delete(name);
  }

  /** Something else was written: the store's revision moves, none of this kind. */
  elsewhere(): void {
    this.#revision += 1;
  }

  /** From now on watches are told of changes when they are let go, in their order. */
  withhold(): void {
    this.#withheld = [];
  }

  letGo(count: number): void {
    for (const event of this.#withheld?.splice(0, count) ?? []) this.#announce(event);
  }

  /** What was removed without an event, as by somebody while the revision was forgotten. */
  forget(): void {
    this.#events = [];
  }

  bookmark(): void {
    this.send(
      JSON.stringify({
        type: 'BOOKMARK',
        object: { metadata: { resourceVersion: this.revision } },
      }),
    );
  }

  /** A line to every watch. */
  send(line: string): void {
    for (const watcher of this.watchers.keys()) watcher.write(`${line}\n`);
  }

  endWatches(): void {
    for (const watcher of this.watchers.keys()) watcher.end();
    this.watchers.clear();
  }

  cutWatches(): void {
    for (const watcher of this.watchers.keys()) watcher.destroy();
    this.watchers.clear();
  }

  #list(query: URLSearchParams, response: ServerResponse): void {
    const names = [...this.objects.keys()].sort();
    const [from, limit] = [
      Number(query.get('continue') ?? 0),
      Number(query.get('limit') ?? names.length),
    ];
    const rest = from + limit < names.length ? { continue: String(from + limit) } : {};
    json(response, {
      metadata: { resourceVersion: this.revision, ...rest },
      items: names.slice(from, from + limit).map((name) => this.objects.get(name)),
    });
  }

  #watch(query: URLSearchParams, response: ServerResponse): void {
    this.timeoutSeconds = Number(query.get('timeoutSeconds'));
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    const since = Number(query.get('resourceVersion'));
    for (const event of this.#events)
      if (Number(event.object.metadata.resourceVersion) > since)
        response.write(`${JSON.stringify(event)}\n`);
    this.watchers.set(response, since);
    response.on('close', () => this.watchers.delete(response));
  }

  #tell(type: string, object: FakeObject): void {
    const event = { type, object };
    if (this.#withheld) this.#withheld.push(event);
    else this.#announce(event);
  }

  #announce(event: { readonly type: string; readonly object: FakeObject }): void {
    this.#events.push(event);
    const { resourceVersion } = event.object.metadata;
    for (const [watcher, since] of this.watchers)
      if (Number(resourceVersion) > since) watcher.write(`${JSON.stringify(event)}\n`);
  }
}
