import type { Log } from '../contracts/log.ts';
import type { Metrics } from '../contracts/metrics.ts';
import type { MirrorReport } from '../contracts/mirror-report.ts';
import { RecordExists, type RecordChange, type Records } from '../contracts/record-store.ts';
import { RecordConflict } from '../contracts/sandbox-driver.ts';
import type { Revision } from '../model/identifiers.ts';
import { unavailable } from '../model/refusals.ts';
import type { ApiClient, ApiServer, ListQuery } from './api-client.ts';
import { asRefusal, isRefused } from './api-errors.ts';
import { listPageOf } from './api-objects.ts';
import { Reflector } from './reflector.ts';
import { API_VERSION, collectionPath, objectPath, overwritten, type Reading, type Resource, type ResourceObject } from './resource.ts';
import { Settler } from './settler.ts';

export interface ResourceRecordsDeps<T> {
  readonly api: ApiServer;
  readonly resource: Resource<T>;
  readonly log: Log;
  readonly metrics?: Metrics;
  /** Of the API server. */
  readonly now: () => number;
  /** Told, before anybody hears of it otherwise, that an object of a later format is there. */
  readonly outdated: (why: string) => void;
}

const PAGE = 250;

/**
 * The records of one kind as objects of the API server, in all namespaces. A revision is the object's resourceVersion. What
 * is no record is not shown: an object made or edited by hand is first settled, a wrong one is told what is wrong, one of a
 * later format is left alone and counted among the problems.
 */
export class ResourceRecords<T extends { readonly revision: Revision }> implements Records<T> {
  readonly #resource: Resource<T>;
  readonly #api: ApiClient;
  readonly #log: Log;
  readonly #reflector: Reflector<Reading<T>>;
  readonly #settler: Settler<T>;
  /** What was reported last, by the object's key. */
  readonly #shown = new Map<string, T>();
  readonly #followers = new Set<(change: RecordChange<T>) => void>();
  readonly #tooNew = new Map<string, number>();
  readonly #outdated: (why: string) => void;

  constructor({ api, resource, log, metrics, now, outdated }: ResourceRecordsDeps<T>) {
    this.#outdated = outdated;
    this.#resource = resource;
    this.#log = log;
    this.#api = api.lane('claims'); // requests wait for it
    const background = api.lane('background');
    this.#settler = new Settler({ api: background, resource, log, now });
    this.#reflector = new Reflector<Reading<T>>({
      api: background, watches: api.lane('watches'), path: collectionPath(resource.plural), log, metrics,
      trim: (object) => resource.read(object as ResourceObject),
      report: ({ type, key, record }) => { this.#learn(key, type === 'put' ? record : undefined); },
    });
  }

  async list(): Promise<readonly T[]> {
    const records: T[] = [];
    for (let next: string | undefined, first = true; first || next !== undefined; first = false) {
      const page = listPageOf(await this.#listed({ limit: PAGE, ...(next === undefined ? {} : { continue: next }) }));
      for (const object of page.items) records.push(...this.#recordIn(object));
      next = page.next;
    }
    return records;
  }

  async get(key: string): Promise<T | undefined> {
    const found = this.#resource.find(key);
    if ('labelSelector' in found) {
      const [object] = listPageOf(await this.#listed({ ...found, limit: 1 })).items;
      return object === undefined ? undefined : this.#recordIn(object)[0];
    }
    const object = await this.#read(objectPath(this.#resource.plural, found));
    return object && this.#recordIn(object)[0];
  }

  async create(draft: Omit<T, 'revision'>): Promise<T> {
    const { kind, plural, unique } = this.#resource;
    const { namespace, name } = this.#resource.place(draft);
    const taken = (): RecordExists => new RecordExists(`${kind} ${namespace === undefined ? '' : `${namespace}/`}${name} is taken`);
    if (unique && listPageOf(await this.#listed({ labelSelector: unique(draft), limit: 1 })).items.length > 0) throw taken();
    const { labels, spec, resolved } = this.#resource.write(draft);
    const body = { apiVersion: API_VERSION, kind, metadata: { name, namespace, labels }, spec, resolved };
    try {
      return this.#written(await this.#api.create(collectionPath(plural, namespace), body));
    } catch (error) {
      if (isRefused(error, 409)) throw taken();
      throw isRefused(error, 404) ? unavailable(`the namespace ${namespace ?? ''} does not exist`) : asRefusal(error);
    }
  }

  /** Reads the object first: what others put on it stays. */
  async update(record: T): Promise<T> {
    const path = objectPath(this.#resource.plural, this.#resource.place(record));
    const object = await this.#read(path);
    if (object?.metadata.resourceVersion !== record.revision) throw this.#conflict(record);
    try {
      return this.#written(await this.#api.replace(path, overwritten(object, this.#resource.write(record, object))));
    } catch (error) {
      throw isRefused(error, 409) || isRefused(error, 404) ? this.#conflict(record) : asRefusal(error);
    }
  }

  async remove(record: T): Promise<void> {
    try {
      await this.#api.remove(objectPath(this.#resource.plural, this.#resource.place(record)), { resourceVersion: record.revision });
    } catch (error) {
      throw isRefused(error, 409) || isRefused(error, 404) ? this.#conflict(record) : asRefusal(error);
    }
  }

  async watch(report: (change: RecordChange<T>) => void): Promise<void> {
    this.#reflector.start();
    await this.#reflector.synced();
    const follower = (change: RecordChange<T>): void => {
      try {
        report(change);
      } catch (error) {
        this.#log.error({ kind: this.#resource.kind, error }, 'a change of a record could not be taken in');
      }
    };
    for (const record of this.#shown.values()) follower({ kind: 'put', record });
    this.#followers.add(follower);
  }

  /** The record as it was last reported, by the object's key. */
  shown(key: string): T | undefined { return this.#shown.get(key); }

  /** What was wrong before may be right now. */
  lookAgain(): void { this.#settler.lookAgain(); }

  report(): MirrorReport { return this.#reflector.report(); }

  /** Why this replica must not be relied on. */
  get problems(): readonly string[] {
    const { stale } = this.#reflector;
    const [newer] = this.#tooNew;
    return [
      ...(stale === undefined ? [] : [`${this.#resource.plural}: ${stale}`]),
      ...(newer ? [`${this.#resource.plural}: ${newer[0]} was written by a later version (format ${newer[1]})`] : []),
    ];
  }

  async stop(): Promise<void> {
    this.#settler.stop();
    await this.#reflector.stop();
  }

  #learn(key: string, reading: Reading<T> | undefined): void {
    if (reading?.kind === 'too-new') {
      this.#tooNew.set(key, reading.format);
      this.#outdated(`${this.#resource.plural}: ${key} was written by a later version (format ${reading.format})`);
    } else this.#tooNew.delete(key);
    this.#settler.consider(key, reading);
    const before = this.#shown.get(key);
    if (reading?.kind === 'record') {
      this.#shown.set(key, reading.record);
      this.#tell({ kind: 'put', record: reading.record });
    } else if (before !== undefined) {
      this.#shown.delete(key);
      this.#tell({ kind: 'gone', record: before });
    }
  }

  #tell(change: RecordChange<T>): void {
    for (const follower of this.#followers) follower(change);
  }

  #recordIn(object: unknown): readonly T[] {
    const reading = this.#resource.read(object as ResourceObject);
    return reading.kind === 'record' ? [reading.record] : [];
  }

  /** What the API server answered to a write of ours. */
  #written(object: unknown): T {
    const [record] = this.#recordIn(object);
    if (!record) throw new Error(`the API server's ${this.#resource.kind} is not the one that was written; its schema may be an older one`);
    return record;
  }

  #conflict(record: T): RecordConflict {
    const { namespace, name } = this.#resource.place(record);
    return new RecordConflict(`${this.#resource.kind} ${namespace === undefined ? '' : `${namespace}/`}${name} has moved on or is gone`);
  }

  async #listed(query: ListQuery): Promise<unknown> {
    try {
      return await this.#api.list(collectionPath(this.#resource.plural), query);
    } catch (error) {
      throw asRefusal(error);
    }
  }

  async #read(path: string): Promise<ResourceObject | undefined> {
    try {
      return await this.#api.get(path) as ResourceObject;
    } catch (error) {
      if (isRefused(error, 404)) return undefined;
      throw asRefusal(error);
    }
  }
}
