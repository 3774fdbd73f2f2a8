import type { ApiClient, ApiServer, WatchEvent } from '../../src/k8s/api/api-calls.ts';
import { ApiRefused } from '../../src/k8s/api/api-errors.ts';

export interface StoredObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
    readonly creationTimestamp?: string;
  };
}

interface Happened {
  readonly at: string;
  readonly revision: number;
  readonly before: StoredObject | undefined;
  readonly after: StoredObject | undefined;
}
type Given = object & { readonly metadata: { readonly name: string; readonly uid?: string } };

/**
 * An API server in memory, objects by their paths. Its watches tell at once, unless they are held;
 * reads may be held too, once they are answered.
 */
export class MemoryApi {
  readonly objects = new Map<string, StoredObject>();
  /** What was asked for, such as `GET /api/v1/…`; lists and watches are not. */
  readonly asked: string[] = [];
  readonly #log: Happened[] = [];
  readonly #wakes = new Set<() => void>();
  /** By kind: the revision up to which its watches tell. */
  readonly #held = new Map<string, number>();
  readonly #forbidden = new Set<string>();
  #gates: { readonly path: string; readonly come: () => void; readonly go: Promise<void> }[] = [];
  #revision = 0;
  /** For what is given time to end. */
  now: () => number = Date.now;

  readonly client: ApiClient = {
    get: async (path) => {
      this.asked.push(`GET ${path}`);
      const found = this.objects.get(path);
      await this.#throughGate(path);
      if (!found) throw absent(path);
      return found;
    },
    list: async (path, { labelSelector }) => {
      if (this.#forbidden.has(path)) throw refused(403, 'Forbidden');
      return {
        metadata: { resourceVersion: String(this.#revision) },
        items: [...this.objects]
          .filter(([at, object]) => isIn(path, at) && passes(object, labelSelector))
          .map(([, object]) => object),
      };
    },
    create: async (path, body, { query } = {}) => {
      const {
        metadata: { name },
      } = body as Given;
      if (this.objects.has(`${path}/${name}`)) throw refused(409, 'AlreadyExists');
      if (query?.['dryRun'] === 'All') return body;
      return this.put(`${path}/${name}`, body);
    },
    replace: async (path, body) => {
      const {
        metadata: { resourceVersion },
      } = body as StoredObject;
      const known = this.objects.get(path);
      if (!known) throw absent(path);
      if (resourceVersion !== undefined && known.metadata.resourceVersion !== resourceVersion)
        throw refused(409, 'Conflict');
      return this.put(path, body);
    },
    patch: async (path, body) => {
      this.asked.push(`PATCH ${path} ${JSON.stringify(body)}`);
      const isStatus = path.endsWith('/status');
      const at = isStatus ? path.slice(0, -'/status'.length) : path;
      const known = this.objects.get(at);
      if (!known) throw absent(at);
      if (isStatus) {
        const {
          metadata: { resourceVersion },
          status,
        } = body as StoredObject & { readonly status: object };
        if (resourceVersion !== known.metadata.resourceVersion) throw refused(409, 'Conflict');
        return this.put(at, { ...known, status });
      }
      const { metadata } = body as { readonly metadata: { readonly labels?: object } };
      return this.put(path, {
        ...known,
        metadata: { ...known.metadata, labels: { ...known.metadata.labels, ...metadata.labels } },
      });
    },
    remove: async (
      path,
      { uid, resourceVersion, gracePeriodSeconds = 0, dryRun } = {},
      options,
    ) => {
      this.asked.push(`DELETE ${path}`);
      const [, name] = String(options?.query?.['fieldSelector']).split('metadata.name=');
      if (dryRun) return { items: [this.objects.get(`${path}/${name}`)] };
      const known = this.objects.get(path);
      if (!known) throw absent(path);
      if (
        (uid ?? known.metadata.uid) !== known.metadata.uid ||
        (resourceVersion ?? known.metadata.resourceVersion) !== known.metadata.resourceVersion
      )
        throw refused(409, 'Conflict');
      if (gracePeriodSeconds === 0) this.remove(path);
      else
        this.put(path, {
          ...known,
          metadata: {
            ...known.metadata,
            deletionTimestamp: new Date(this.now() + gracePeriodSeconds * 1_000).toISOString(),
            deletionGracePeriodSeconds: gracePeriodSeconds,
          },
        });
      return {};
    },
    watch: (path, { resourceVersion, labelSelector }, signal) =>
      this.#watch({ path, since: Number(resourceVersion), labelSelector }, signal),
  };

  readonly server: ApiServer = {
    lane: () => this.client,
    calm: async () => undefined,
    close: async () => undefined,
  };

  put(path: string, body: object): StoredObject {
    const { metadata } = body as Given;
    const before = this.objects.get(path);
    const after: StoredObject = {
      ...body,
      metadata: {
        creationTimestamp: '1970-01-01T00:00:00Z',
        ...metadata,
        uid: metadata.uid ?? before?.metadata.uid ?? `uid-${this.#revision + 1}`,
        resourceVersion: String((this.#revision += 1)),
      },
    };
    this.objects.set(path, after);
    this.#happened({ at: path, revision: this.#revision, before, after });
    return after;
  }

  remove(path: string): void {
    const before = this.objects.get(path);
    this.objects.delete(path);
    this.#revision += 1;
    this.#happened({ at: path, revision: this.#revision, before, after: undefined });
  }

  /** Lists and watches of the collection are refused until they are allowed again. */
  forbid(collection: string): void {
    this.#forbidden.add(collection);
    for (const wake of this.#wakes) wake();
  }

  allow(collection: string): void {
    this.#forbidden.delete(collection);
  }

  /** Watches of the kind tell nothing until they are let go. */
  hold(kind: string): void {
    this.#held.set(kind, 0);
  }

  /** Held watches of the kind tell what happened up to the revision. */
  letGoUntil(kind: string, revision: string): void {
    this.#held.set(kind, Number(revision));
    for (const wake of this.#wakes) wake();
  }

  letGo(): void {
    this.#held.clear();
    for (const wake of this.#wakes) wake();
  }

  /**
   * The next read of the path is answered by what stands then, and the answer comes once `letGo` is
   * called.
   */
  holdRead(path: string): { readonly begun: Promise<void>; readonly letGo: () => void } {
    let [come, letGo] = [(): void => undefined, (): void => undefined];
    const begun = new Promise<void>((resolve) => {
      come = resolve;
    });
    const go = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    this.#gates.push({ path, come, go });
    return { begun, letGo };
  }

  async #throughGate(path: string): Promise<void> {
    const gate = this.#gates.find((each) => each.path === path);
    if (!gate) return;
    this.#gates = this.#gates.filter((each) => each !== gate);
    gate.come();
    await gate.go;
  }

  #happened(happened: Happened): void {
    this.#log.push(happened);
    for (const wake of this.#wakes) wake();
  }

  async *#watch(
    {
      path,
      since,
      labelSelector,
    }: {
      readonly path: string;
      readonly since: number;
      readonly labelSelector: string | undefined;
    },
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent> {
    let told = since;
    while (!signal.aborted) {
      if (this.#forbidden.has(path)) throw refused(403, 'Forbidden');
      const until = this.#held.get(kindIn(path)) ?? Infinity;
      const next = this.#log.find(
        (each) => isIn(path, each.at) && each.revision > told && each.revision <= until,
      );
      if (next) {
        told = next.revision;
        const event = eventOf(next, labelSelector);
        if (event) yield event;
        continue;
      }
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#wakes.delete(wake);
          signal.removeEventListener('abort', wake);
          resolve();
        };
        this.#wakes.add(wake);
        signal.addEventListener('abort', wake);
      });
    }
  }
}

/**
 * As the API server tells it to a watch with a selection: what no longer passes is DELETED, as it
 * was before.
 */
const eventOf = (
  { before, after, revision }: Happened,
  labelSelector: string | undefined,
): WatchEvent | undefined => {
  const [was, is] = [
    before && passes(before, labelSelector),
    after && passes(after, labelSelector),
  ];
  if (is) return { type: was ? 'MODIFIED' : 'ADDED', object: after };
  return was && before
    ? {
        type: 'DELETED',
        object: { ...before, metadata: { ...before.metadata, resourceVersion: String(revision) } },
      }
    : undefined;
};

const passes = (
  { metadata: { labels } }: StoredObject,
  labelSelector: string | undefined,
): boolean =>
  labelSelector === undefined ||
  labelSelector.split(',').every((part) => {
    const [name = '', value] = part.split('=');
    return labels?.[name] !== undefined && (value === undefined || labels[name] === value);
  });

const kindIn = (collection: string): string => collection.split('/').at(-1) ?? '';
/** Whether an object is in the collection, which is all of its kind or those in one namespace. */
const isIn = (collection: string, path: string): boolean => {
  const [kind, ...place] = path.slice(0, path.lastIndexOf('/')).split('/').reverse();
  const isAll = !collection.includes('/namespaces/');
  return (
    kind === kindIn(collection) && (isAll || collection === [kind, ...place].reverse().join('/'))
  );
};

export const absent = (path: string): ApiRefused => {
  const [kind = '', name = ''] = path.split('/').slice(-2);
  return new ApiRefused({
    status: 404,
    reason: 'NotFound',
    message: `${kind} "${name}" not found`,
    causes: [],
    retryAfterSeconds: undefined,
    missing: { kind, name },
  });
};

const refused = (status: number, reason: string): ApiRefused =>
  new ApiRefused({ status, reason, message: reason, causes: [], retryAfterSeconds: undefined });
