import type { Clock } from '../../../contracts/clock.ts';
import type { Log } from '../../../contracts/log.ts';
import type { MirrorReport } from '../../../contracts/mirror-report.ts';
import { Deferred } from '../../../lib/deferred.ts';
import type { ApiServer } from '../../api/api-calls.ts';
import { isRefused } from '../../api/api-errors.ts';
import { Reflector } from '../../api/reflector.ts';
import { FORBIDDEN, TIMINGS, type ReflectorTuning } from '../../api/reflector-terms.ts';
import { POOL_LABEL } from '../sandbox-resource.ts';
import type { PodMirrors } from './pod-mirrors.ts';
import { podsPath, storedPodOf, type StoredPod } from './pod-resource.ts';

export interface PodReflectorsDeps {
  readonly api: ApiServer;
  readonly clock: Clock;
  readonly log: Log;
  readonly mirrors: PodMirrors;
  readonly inUse: () => ReadonlySet<string>;
  readonly changed: (namespace: string) => void;
  readonly tuning?: ReflectorTuning;
}

interface Followed {
  readonly reflector: Reflector<StoredPod>;
  readonly since: number;
  readonly settled: Deferred<void>;
  isListed: boolean;
  isUnseen: boolean;
}

const LOOK_EVERY_MS = 60_000;
const MOST_NAMED = 10;

/**
 * Follows the Pods of each namespace with records by its own watch, so the daemon needs no right to
 * read other Pods. Retries unreadable ones forever. Stops a minute or two after the last record.
 */
export class PodReflectors {
  readonly #deps: PodReflectorsDeps;
  readonly #followed = new Map<string, Followed>();
  #unused: ReadonlySet<string> = new Set();
  #cancelLook: () => void = () => undefined;
  readonly #ending = new Set<Promise<void>>();
  #isRunning = false;

  constructor(deps: PodReflectorsDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#isRunning = true;
    for (const namespace of this.#deps.inUse()) this.follow(namespace);
    this.#lookLater();
  }

  follow(namespace: string): void {
    if (!this.#isRunning || this.#followed.has(namespace)) return;
    const { api, log, mirrors, tuning } = this.#deps;
    const followed: Followed = {
      reflector: new Reflector({
        api: api.lane('background'),
        watches: api.lane('watches'),
        log,
        path: podsPath(namespace),
        labelSelector: POOL_LABEL,
        mirror: mirrors.in(namespace),
        trim: storedPodOf,
        tuning,
        failed: (error) => {
          if (isRefused(error, FORBIDDEN)) this.#refused(namespace, followed);
        },
        heard: () => {
          this.#heard(namespace, followed);
        },
      }),
      since: performance.now(),
      settled: new Deferred(),
      isListed: false,
      isUnseen: false,
    };
    this.#followed.set(namespace, followed);
    followed.reflector.start();
    followed.reflector.synced().then(
      () => {
        followed.settled.resolve();
      },
      (error: unknown) => {
        followed.settled.reject(error);
      },
    );
  }

  async settled(): Promise<void> {
    await Promise.all([...this.#followed.values()].map(({ settled }) => settled.promise));
  }

  /** Resolves once everything written before this call is reported, with the same exception. */
  async caughtUp(deadlineMs: number): Promise<void> {
    await catchUp([...this.#followed.values()], deadlineMs);
  }

  async listed(deadlineMs: number): Promise<void> {
    await catchUp(
      [...this.#followed.values()].filter(({ isListed }) => !isListed),
      deadlineMs,
    );
  }

  async reached(namespace: string, revision: string, withinMs: number): Promise<boolean> {
    const followed = this.#followed.get(namespace);
    return followed !== undefined && (await followed.reflector.reached(revision, withinMs));
  }

  /** Undefined if the Pods are readable. */
  trouble(namespace: string): string | undefined {
    return this.#followed.get(namespace)?.isUnseen ? UNSEEN : undefined;
  }

  /** Ignores missing rights. */
  get stale(): string | undefined {
    const stale = [...this.#followed].filter(
      ([, { reflector, since, isListed }]) =>
        !reflector.refused &&
        reflector.stale !== undefined &&
        (isListed || performance.now() - since > TIMINGS.silenceMs),
    );
    const [first] = stale;
    return first && `${first[1].reflector.stale ?? ''} (${named(stale.map(([name]) => name))})`;
  }

  warnings(): readonly string[] {
    const refused = [...this.#followed].filter(([, { reflector }]) => reflector.refused);
    return refused.length === 0 ? [] : [lacksRights(named(refused.map(([name]) => name)))];
  }

  reports(): readonly MirrorReport[] {
    return [...this.#followed].map(([namespace, { reflector }]) => ({
      ...reflector.report(),
      namespace,
    }));
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#cancelLook();
    for (const namespace of [...this.#followed.keys()]) this.#end(namespace);
    await Promise.all(this.#ending);
  }

  #refused(namespace: string, followed: Followed): void {
    const { log, changed } = this.#deps;
    if (!followed.reflector.refused) log.warn({ namespace }, 'pods-not-readable');
    if ((followed.isListed && followed.reflector.stale === undefined) || followed.isUnseen) return;
    followed.isUnseen = true;
    changed(namespace);
    followed.settled.resolve();
  }

  #heard(namespace: string, followed: Followed): void {
    followed.isListed = true;
    if (!followed.isUnseen) return;
    followed.isUnseen = false;
    this.#deps.changed(namespace);
  }

  #lookLater(): void {
    const { clock } = this.#deps;
    this.#cancelLook = clock.at(clock.now() + LOOK_EVERY_MS, () => {
      this.#leaveUnused();
      this.#lookLater();
    });
  }

  /** A pool may have no record for a moment, so two checks must agree. */
  #leaveUnused(): void {
    const inUse = this.#deps.inUse();
    const unused = new Set([...this.#followed.keys()].filter((name) => !inUse.has(name)));
    for (const namespace of unused) {
      if (!this.#unused.has(namespace)) continue;
      this.#end(namespace);
      this.#deps.mirrors.forget(namespace);
    }
    this.#unused = unused;
  }

  #end(namespace: string): void {
    const followed = this.#followed.get(namespace);
    if (!followed) return;
    this.#followed.delete(namespace);
    const ending = followed.reflector.stop().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}

const catchUp = async (followed: readonly Followed[], deadlineMs: number): Promise<void> => {
  await Promise.all(
    followed.map(({ reflector }) =>
      reflector.caughtUp(deadlineMs).catch((error: unknown) => {
        if (!isRefused(error, FORBIDDEN)) throw error;
      }),
    ),
  );
};

const UNSEEN = 'the daemon has no right to read the Pods of its namespace';

const lacksRights = (where: string): string =>
  `the daemon has no right to read Pods in ${where}: the RoleBinding to the chart's ` +
  `ClusterRole that ends in -tenant is missing there; add the team to \`teams\` of the chart, ` +
  'and run helm upgrade';

const named = (namespaces: readonly string[]): string => {
  const rest = namespaces.length - MOST_NAMED;
  const names = namespaces.slice(0, MOST_NAMED).join(', ');
  const kind = namespaces.length === 1 ? 'namespace' : 'namespaces';
  return `${kind} ${names}${rest > 0 ? `, and ${rest} more` : ''}`;
};
