import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import type { MirrorReport } from '../../contracts/mirror-report.ts';
import { RecordExists, type RecordChange, type Records } from '../../contracts/record-store.ts';
import { RecordConflict } from '../../contracts/sandbox-driver.ts';
import type { Revision } from '../../model/identifiers.ts';
import { Mirror } from '../../model/mirror/mirror.ts';
import type { Version } from '../../model/mirror/mirror-terms.ts';
import { unavailable } from '../../model/refusals.ts';
import type { ApiClient, ApiServer, ListQuery } from '../api/api-calls.ts';
import { asRefusal, isAbsent, isRefused, notFound } from '../api/api-errors.ts';
import { keyOf, listPageOf, versionOf } from '../api/api-objects.ts';
import { measureMirror } from '../api/mirror-metrics.ts';
import { Reflector } from '../api/reflector.ts';
import {
  API_VERSION,
  collectionPath,
  objectPath,
  overwritten,
  standingIn,
  type OutdatedReport,
  type Place,
  type Reading,
  type Resource,
  type ResourceObject,
} from '../api/resource.ts';
import { ResourceInitializer } from './resource-initializer.ts';

export interface ResourceRecordsDeps<T> {
  readonly api: ApiServer;
  readonly resource: Resource<T>;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly now: () => number;
  /** Called before other listeners; `why` is undefined once the object is gone. */
  readonly outdated: OutdatedReport;
}

const PAGE = 250;
const CATCH_UP_MS = 5_000;
/** The API server reports creation time and current time in whole seconds. */
/** An object with a record's label, or a copy of the label. */
const MOST_LABELLED = 16;

/**
 * The records of one kind in all namespaces. A revision is the object's resourceVersion. Hand-made
 * objects are settled first, and later versions are left alone and reported as problems.
 */
export class ResourceRecords<T extends { readonly revision: Revision }> implements Records<T> {
  readonly #resource: Resource<T>;
  readonly #api: ApiClient;
  readonly #log: Log;
  readonly #mirror: Mirror<Reading<T>>;
  readonly #reflector: Reflector<Reading<T>>;
  readonly #initializer: ResourceInitializer<T>;
  readonly #shown = new Map<string, T>();
  readonly #followers = new Set<(change: RecordChange<T>) => void>();
  readonly #tooNew = new Set<string>();
  readonly #outdated: OutdatedReport;
  #isFollowed = false;

  constructor({ api, resource, log, metrics, now, outdated }: ResourceRecordsDeps<T>) {
    this.#outdated = outdated;
    this.#resource = resource;
    this.#log = log;
    this.#api = api.lane('claims'); // requests wait for these calls
    const background = api.lane('background');
    this.#initializer = new ResourceInitializer({ api: background, resource, log, now });
    this.#mirror = new Mirror({
      report: ({ type, key, record }) => {
        this.#learn(key, type === 'put' ? record : undefined);
      },
    });
    this.#reflector = new Reflector<Reading<T>>({
      api: background,
      watches: api.lane('watches'),
      path: collectionPath(resource.plural),
      log,
      mirror: this.#mirror,
      trim: (object) => this.#reading(object),
    });
    measureMirror(metrics, resource.plural, () => [this.report()]);
  }

  async list(namespace?: string): Promise<readonly T[]> {
    const records: T[] = [];
    for (let next: string | undefined, first = true; first || next !== undefined; first = false) {
      const page = listPageOf(await this.#listed({ limit: PAGE, continue: next }, namespace));
      for (const object of page.items) records.push(...this.#recordIn(object));
      next = page.next;
    }
    return records;
  }

  async get(key: string): Promise<T | undefined> {
    const found = this.#resource.find(key);
    if ('labelSelector' in found) {
      const { items } = listPageOf(await this.#listed({ ...found, limit: MOST_LABELLED }));
      return items.flatMap((object) => this.#learnt(object) ?? [])[0];
    }
    const object = await this.#read(found);
    return object && this.#recordIn(object)[0];
  }

  async create(draft: Omit<T, 'revision'>, permitted?: () => boolean): Promise<T> {
    const { kind, plural, unique } = this.#resource;
    const { namespace, name } = this.#resource.place(draft);
    const taken = (): RecordExists =>
      new RecordExists(`${kind} ${namespace === undefined ? '' : `${namespace}/`}${name} is taken`);
    if (
      unique &&
      listPageOf(await this.#listed({ labelSelector: unique(draft), limit: 1 })).items.length > 0
    )
      throw taken();
    const { labels, spec, resolved } = this.#resource.write(draft);
    const body = {
      apiVersion: API_VERSION,
      kind,
      metadata: { name, namespace, labels },
      spec,
      resolved,
    };
    const made = this.#mirror.creates();
    try {
      const object = await this.#api.create(collectionPath(plural, namespace), body, { permitted });
      made(this.#versionOf(object));
      return await this.#sealed(object);
    } catch (error) {
      if (isRefused(error, 409)) throw taken();
      throw isAbsent(error, 'namespaces')
        ? unavailable(`the namespace ${namespace ?? ''} does not exist`)
        : asRefusal(error);
    }
  }

  /**
   * Seals a new object, whose uid is known only now. If this fails, the initializers seal it later.
   */
  async #sealed(object: unknown): Promise<T> {
    const created = this.#written(object);
    const reading = this.#resource.read(object as ResourceObject);
    if (reading.kind !== 'record' || !reading.unbound) return created;
    const path = objectPath(this.#resource.plural, this.#resource.place(created));
    const sealed = overwritten(
      object as ResourceObject,
      this.#resource.write(created, object as ResourceObject),
    );
    return await this.#api.replace(path, sealed).then(
      (stored) => this.#written(stored),
      () => created,
    );
  }

  /** Reads the object first, to preserve others' metadata. */
  async update(record: T, permitted?: () => boolean): Promise<T> {
    const place = this.#resource.place(record);
    const path = objectPath(this.#resource.plural, place);
    const object = await this.#read(place);
    if (object?.metadata.resourceVersion !== record.revision) throw this.#conflict(record);
    try {
      return this.#written(
        await this.#api.replace(path, overwritten(object, this.#resource.write(record, object)), {
          permitted,
        }),
      );
    } catch (error) {
      throw isRefused(error, 409) || isAbsent(error) ? this.#conflict(record) : asRefusal(error);
    }
  }

  async remove(record: T): Promise<void> {
    const place = this.#resource.place(record);
    try {
      await this.#api.remove(objectPath(this.#resource.plural, place), {
        resourceVersion: record.revision,
      });
    } catch (error) {
      throw isRefused(error, 409) || isAbsent(error) ? this.#conflict(record) : asRefusal(error);
    }
    this.#mirror.removed(keyOf(place), { revision: record.revision });
  }

  async watch(report: (change: RecordChange<T>) => void): Promise<void> {
    this.#isFollowed = true;
    this.#reflector.start();
    await this.#reflector.synced();
    const follower = (change: RecordChange<T>): void => {
      try {
        report(change);
      } catch (error) {
        this.#log.error({ kind: this.#resource.kind, error }, 'record-change-not-applied');
      }
    };
    for (const record of this.#shown.values()) follower({ kind: 'put', record });
    this.#followers.add(follower);
  }

  caughtUp(): Promise<void> {
    return this.#reflector.caughtUp(CATCH_UP_MS);
  }

  get isFollowed(): boolean {
    return this.#isFollowed;
  }

  mirrored(): Iterable<T> {
    return this.#shown.values();
  }

  shown(key: string): T | undefined {
    return this.#shown.get(key);
  }

  readonly standing = (key: string) => standingIn(this.#mirror.get(key));

  lookAgain(namespace?: string): void {
    this.#initializer.lookAgain(namespace);
  }

  report(): MirrorReport {
    return this.#reflector.report();
  }

  get problems(): readonly string[] {
    const { stale } = this.#reflector;
    return stale === undefined ? [] : [`${this.#resource.plural}: ${stale}`];
  }

  async stop(): Promise<void> {
    this.#initializer.stop();
    await this.#reflector.stop();
  }

  #learn(key: string, reading: Reading<T> | undefined): void {
    if (reading?.kind === 'too-new') {
      this.#tooNew.add(key);
      this.#outdated(
        `${this.#resource.plural}: ${key}`,
        `was written by a later version (format ${reading.format})`,
      );
    } else if (this.#tooNew.delete(key))
      this.#outdated(`${this.#resource.plural}: ${key}`, undefined);
    this.#initializer.consider(key, reading);
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

  #reading(object: unknown): Reading<T> {
    return this.#resource.read(object as ResourceObject);
  }

  #versionOf(object: unknown): Version<Reading<T>> {
    return versionOf(object, (given) => this.#reading(given));
  }

  /** Reuses a record that is shown at the same revision, since seals and schemas cost most. */
  #recordIn(object: unknown): readonly T[] {
    const { namespace, name, resourceVersion } = (object as ResourceObject).metadata;
    const shown = this.#shown.get(keyOf({ namespace, name }));
    if (shown !== undefined && shown.revision === resourceVersion) return [shown];
    const reading = this.#reading(object);
    return reading.kind === 'record' ? [reading.record] : [];
  }

  #learnt(object: unknown): T | undefined {
    this.#mirror.learn(this.#versionOf(object));
    return this.#recordIn(object)[0];
  }

  #written(object: unknown): T {
    const record = this.#learnt(object);
    if (!record)
      throw new Error(
        `the API server returned another ${this.#resource.kind} than the one that was ` +
          'written; its schema may be older',
      );
    return record;
  }

  #conflict(record: T): RecordConflict {
    const { namespace, name } = this.#resource.place(record);
    return new RecordConflict(
      `${this.#resource.kind} ${namespace === undefined ? '' : `${namespace}/`}${name} ` +
        'has moved on or is gone',
    );
  }

  async #listed(query: ListQuery, namespace?: string): Promise<unknown> {
    try {
      return await this.#api.list(collectionPath(this.#resource.plural, namespace), query);
    } catch (error) {
      throw asRefusal(error);
    }
  }

  async #read(place: Place): Promise<ResourceObject | undefined> {
    const found = this.#mirror.read(keyOf(place));
    try {
      const object = await this.#api.get(objectPath(this.#resource.plural, place)).catch(notFound);
      found(object === undefined ? undefined : this.#versionOf(object));
      return object as ResourceObject | undefined;
    } catch (error) {
      throw asRefusal(error);
    }
  }
}
