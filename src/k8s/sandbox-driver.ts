import type { Duplex } from 'node:stream';
import type { Clock } from '../contracts/clock.ts';
import type { Log } from '../contracts/log.ts';
import type { Metrics } from '../contracts/metrics.ts';
import type { MirrorReport } from '../contracts/mirror-report.ts';
import {
  DefinitionRefused, InstanceGone, LeaseLost, LogsGone, OutcomeUnknown, RecordConflict,
  type DriverDescription, type ExecOutcome, type ExecRequest, type LogBatch, type LogFollowing, type LogRequest, type LogTail, type ProbeOutcome, type SandboxDriver, type Terminal, type TerminalRequest,
} from '../contracts/sandbox-driver.ts';
import { podNameOf, type InstanceId, type Revision } from '../model/identifiers.ts';
import type { Birth, Claim, End, InstanceFact, InstanceRecord } from '../model/sandbox.ts';
import type { InstanceDefinition } from '../model/template.ts';
import type { ApiClient, ApiServer } from './api-client.ts';
import { isRefused, notFound } from './api-errors.ts';
import { Births } from './births.ts';
import { IdleLook } from './idle-look.ts';
import { endOf, InstanceMirror, recordOf } from './instance-mirror.ts';
import { InstanceReflectors } from './instance-reflectors.ts';
import { PodProbes } from './pod-probes.ts';
import { PodRemoval } from './pod-removal.ts';
import { podPath, storedPodOf, type PodSettings, type StoredPod } from './pod-resource.ts';
import { unjoinable, type PodTarget } from './pod-presence.ts';
import type { PodStreams as RealPodStreams } from './pod-streams.ts';
import { placedProbes } from './probe-places.ts';
import { type Rewriting, rewritten, sandboxPath, storedFrom, type StoredSandbox } from './sandbox-resource.ts';

export interface KubernetesDriverDeps {
  readonly api: ApiServer;
  readonly streams: PodStreams;
  readonly pods: PodSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: Metrics;
  /** Told that a record of a later format is there: then this replica must lead nothing. */
  readonly outdated: (why: string) => void;
}

/** What a Pod's inside is reached by; `PodStreams` of pod-streams.ts. The driver tells it what ends, and stops it. */
export type PodStreams = Pick<RealPodStreams, keyof RealPodStreams>;

/** Writes of one change, each at the revision that was read last. */
const MOST_ATTEMPTS = 4;

/**
 * Runs instances as Pods: each has a `Sandbox` record of its own, which is written before its Pod and owns it. A claim is
 * one conditional PUT of the record, a retirement one conditional DELETE of it; the API server decides who was first.
 */
export class KubernetesSandboxDriver implements SandboxDriver {
  readonly #deps: KubernetesDriverDeps;
  /** For what a request waits for. */
  readonly #soon: ApiClient;
  readonly #background: ApiClient;
  readonly #mirror: InstanceMirror;
  readonly #reflectors: InstanceReflectors;
  readonly #births: Births;
  readonly #probes: PodProbes;
  readonly #removal: PodRemoval;
  readonly #idle: IdleLook;
  readonly #looking = new Set<InstanceId>();
  #report: (fact: InstanceFact) => void = () => {};
  #stopped = false;

  constructor(deps: KubernetesDriverDeps) {
    this.#deps = deps;
    this.#soon = deps.api.lane('claims');
    this.#background = deps.api.lane('background');
    this.#mirror = new InstanceMirror({
      report: (fact) => { this.#report(fact); }, missesPod: (id) => { this.#lookForPod(id); }, nodeTrouble: (name) => this.#reflectors.nodeTrouble(name),
    });
    this.#reflectors = new InstanceReflectors({ ...deps, mirror: this.#mirror, podGone: (uid) => { deps.streams.gone(uid); } });
    this.#births = new Births({ api: this.#background, calm: () => deps.api.calm('claims'), mirror: this.#mirror, pods: deps.pods });
    this.#probes = new PodProbes({ api: this.#soon, streams: deps.streams });
    this.#removal = new PodRemoval({
      soon: this.#soon, background: this.#background, mirror: this.#mirror, clock: deps.clock, graceSeconds: deps.pods.terminationGraceSeconds,
      gone: (uid) => { deps.streams.gone(uid); }, run: (work, running) => { this.#run(work, running); },
    });
    this.#idle = new IdleLook({
      api: this.#soon, clock: deps.clock, mirror: this.#mirror, read: (stored) => this.#factOf(stored),
      podsReached: (revision, withinMs) => this.#reflectors.podsReached(revision, withinMs), lookAtNode: (name) => this.#reflectors.lookAtNode(name),
    });
  }

  describe(): DriverDescription {
    return { isolation: 'pod', warnings: [], problems: this.#reflectors.problems(), work: { looks: this.#looking.size } };
  }

  reflectors(): readonly MirrorReport[] { return this.#reflectors.reports(); }

  async watch(report: (fact: InstanceFact) => void): Promise<void> {
    this.#report = report;
    await this.#reflectors.start();
  }

  caughtUp(): Promise<void> { return this.#reflectors.caughtUp(); }

  check(definition: InstanceDefinition): void {
    definition.containers.forEach(({ image }, index) => {
      if (image === 'host') throw new DefinitionRefused(`spec.containers[${index}].image: a Pod needs the name of a container image; "host" is for the embedded daemon`);
    });
    const [homeless] = placedProbes(definition).homeless;
    if (homeless !== undefined) throw new DefinitionRefused(`spec.endpoints: the readiness probe of "${homeless}" has no place: a Pod runs one for each container, and each has one already`);
    if (definition.network === 'host') throw new DefinitionRefused('spec.network: "host" is for the embedded daemon; a Pod has a network of its own');
  }

  expect(): void {}

  async launch(birth: Birth, permitted: () => boolean): Promise<InstanceRecord> {
    this.check(birth.definition);
    return await this.#births.bear(birth, () => { if (!permitted()) throw new LeaseLost('another replica launches'); });
  }

  async claim(seen: InstanceRecord, claim: Claim): Promise<InstanceRecord> {
    const { stored, pod } = this.#seen(seen.id, seen.revision);
    return await this.#rewrite({ ...seen, state: 'claimed', claim }, { ...stored, podUid: pod?.uid });
  }

  async amend(id: InstanceId, { idleTimeoutMs }: { readonly idleTimeoutMs: number }, revision: Revision): Promise<InstanceRecord> {
    const { stored } = this.#seen(id, revision);
    const { claim } = stored.record;
    if (!claim) throw new RecordConflict('it is not claimed');
    return await this.#rewrite({ ...stored.record, claim: { ...claim, idleTimeoutMs } }, stored);
  }

  async bump(id: InstanceId, revision: Revision): Promise<InstanceRecord> {
    const { stored } = this.#seen(id, revision);
    if (stored.record.claim) throw new RecordConflict('it is claimed');
    return await this.#rewrite(stored.record, { ...stored, bumped: true });
  }

  async retire(id: InstanceId, seen: Revision): Promise<void> {
    const known = this.#mirror.sandbox(id);
    if (!known) return;
    if (known.record.claim) throw new RecordConflict('it is claimed');
    const { namespace } = known.record.poolOwner;
    try {
      await this.#background.remove(sandboxPath(namespace, id), { uid: known.uid, resourceVersion: seen, propagationPolicy: 'Background' });
    } catch (error) {
      if (isRefused(error, 409)) throw new RecordConflict('it was claimed, or changed', { cause: error });
      if (!isRefused(error, 404)) throw error;
    }
    const pod = this.#mirror.pod(id);
    this.#mirror.dropSandbox(id, known.uid);
    if (pod) this.#removal.removeLater(pod);
  }

  /** The end of its Pod is the durable note, and says `deleted`; another reason is written into the record before. */
  async release(id: InstanceId, end: End): Promise<void> {
    const pod = this.#mirror.pod(id);
    if (pod?.endsBy !== undefined || pod?.vitals.kind === 'gone' || this.#mirror.isPodGone(id)) return;
    if (end.reason !== 'deleted') await this.#noteEnd(id, end);
    const known = this.#mirror.sandbox(id);
    const namespace = known?.record.poolOwner.namespace ?? pod?.namespace;
    if (namespace === undefined) return;
    const uid = known?.podUid ?? pod?.uid;
    if (uid === undefined) throw new OutcomeUnknown('its Pod is not known yet');
    await this.#removal.remove({ namespace, id, uid });
  }

  async forget(id: InstanceId): Promise<void> {
    const known = this.#mirror.sandbox(id);
    if (!known) return;
    await this.#background.remove(sandboxPath(known.record.poolOwner.namespace, id), { uid: known.uid, propagationPolicy: 'Background' }).catch(notFound);
    this.#mirror.dropSandbox(id, known.uid);
  }

  async read(id: InstanceId): Promise<InstanceFact> {
    const known = this.#mirror.sandbox(id)?.record.poolOwner.namespace ?? this.#mirror.pod(id)?.namespace;
    if (known === undefined) return { id, record: undefined, vitals: { kind: 'gone', exitCode: null, reason: 'there is no such sandbox' } };
    return await this.#readIn(known, id);
  }

  /** An id that no mirror shows is looked for in the namespace given. */
  async confirm(id: InstanceId, namespace: string): Promise<InstanceFact> {
    return await this.#readIn(this.#mirror.sandbox(id)?.record.poolOwner.namespace ?? namespace, id);
  }

  async idle(poolUid: string, namespace: string): Promise<readonly InstanceFact[]> {
    return await this.#idle.look(poolUid, namespace);
  }

  async exec(id: InstanceId, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome> {
    return await this.#deps.streams.exec(await this.#joined(id, request.container), request, signal);
  }

  async attach(id: InstanceId, request: TerminalRequest): Promise<Terminal> {
    return await this.#deps.streams.attach(await this.#joined(id, request.container), request);
  }

  async logs(id: InstanceId, request: LogRequest): Promise<LogTail> {
    return await this.#deps.streams.logs(await this.#logged(id, request.container), request);
  }

  async *followLogs(id: InstanceId, { after, container }: LogFollowing, signal: AbortSignal): AsyncIterable<LogBatch> {
    yield* this.#deps.streams.followLogs(await this.#logged(id, container), after, signal);
  }

  async probe(id: InstanceId): Promise<readonly ProbeOutcome[]> {
    return await this.#probes.run(await this.#joined(id, undefined));
  }

  async dial(id: InstanceId, port: number, signal: AbortSignal): Promise<Duplex> {
    return await this.#deps.streams.dial(await this.#joined(id, undefined), port, signal);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#report = () => {};
    await Promise.all([this.#reflectors.stop(), this.#deps.streams.stop()]);
  }

  /** What a conditional write needs to know. Rejects with RecordConflict where the record is no more as it was seen. */
  #seen(id: InstanceId, revision: Revision): { readonly stored: StoredSandbox; readonly pod: StoredPod | undefined } {
    const stored = this.#mirror.sandbox(id);
    if (!stored || stored.terminating || stored.record.revision !== revision) throw new RecordConflict('the record is no more as it was seen');
    return { stored, pod: this.#mirror.pod(id) };
  }

  async #rewrite(record: InstanceRecord, of: Rewriting): Promise<InstanceRecord> {
    try {
      const stored = storedFrom(await this.#soon.replace(sandboxPath(record.poolOwner.namespace, record.id), rewritten(record, of)));
      this.#mirror.putSandbox(stored, { quietly: true });
      return stored.record;
    } catch (error) {
      if (isRefused(error, 409) || isRefused(error, 404)) throw new RecordConflict('the record moved, or is gone', { cause: error });
      throw error;
    }
  }

  async #readIn(namespace: string, id: InstanceId): Promise<InstanceFact> {
    const found = await this.#soon.get(sandboxPath(namespace, id)).catch(notFound);
    if (found === undefined) {
      const known = this.#mirror.sandbox(id);
      if (known) this.#mirror.dropSandbox(id, known.uid);
    }
    return await this.#factOf(found === undefined ? { id, namespace } : storedFrom(found));
  }

  /** The record as given, its Pod read uncached. What is found is kept. */
  async #factOf(of: StoredSandbox | { readonly id: InstanceId; readonly namespace: string }): Promise<InstanceFact> {
    const stored = 'record' in of ? of : undefined;
    const { id, namespace } = 'record' in of ? { id: of.record.id, namespace: of.record.poolOwner.namespace } : of;
    const before = this.#mirror.pod(id);
    const found = await this.#soon.get(podPath(namespace, podNameOf(id))).catch(notFound);
    const pod = found === undefined ? undefined : storedPodOf(found);
    if (before && before.uid !== pod?.uid) this.#mirror.dropPod(before); // the watch will tell so too, later
    if (pod) this.#removal.hurry(pod);
    const own = pod && (!stored || (pod.ownerUid === stored.uid && (stored.podUid === undefined || stored.podUid === pod.uid))) ? pod : undefined;
    if (stored) this.#mirror.putSandbox(stored);
    if (own) this.#mirror.putPod(own);
    // An unclaimed record may still get its Pod.
    else if (stored?.record.claim || !stored || this.#mirror.isPodGone(id)) this.#mirror.foundNoPod(id);
    return this.#mirror.fact(id) ?? { id, record: recordOf(stored, own && endOf(own)), vitals: own?.vitals ?? { kind: 'gone', exitCode: null, reason: 'there is no such Pod' } };
  }

  /** The first end noted stands. */
  async #noteEnd(id: InstanceId, end: End): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const stored = this.#mirror.sandbox(id);
      if (!stored?.record.claim || stored.record.end) return;
      try {
        await this.#rewrite({ ...stored.record, end }, stored);
        return;
      } catch (error) {
        if (!(error instanceof RecordConflict) || attempt === MOST_ATTEMPTS) throw error;
        await this.#readIn(stored.record.poolOwner.namespace, id);
      }
    }
  }

  #lookForPod(id: InstanceId): void {
    if (this.#looking.has(id) || this.#stopped) return;
    this.#looking.add(id);
    this.#run('look for the Pod of a claimed sandbox', this.read(id).finally(() => { this.#looking.delete(id); }));
  }

  #run(work: string, running: Promise<unknown>): void {
    running.catch((error: unknown) => { if (!this.#stopped) this.#deps.log.warn({ work, error }, 'background work failed'); });
  }

  async #joined(id: InstanceId, container: string | undefined): Promise<PodTarget> {
    const target = await this.#target(id, container);
    if (!target) throw new InstanceGone('its Pod is gone');
    return target;
  }

  async #logged(id: InstanceId, container: string | undefined): Promise<PodTarget> {
    const target = await this.#target(id, container);
    if (!target) throw new LogsGone('a sandbox\'s log ends with its Pod; look in the cluster\'s own log store');
    return target;
  }

  /** Undefined where its Pod is gone. One that no watch has told of yet is looked for. */
  async #target(id: InstanceId, container: string | undefined): Promise<PodTarget | undefined> {
    if (!this.#mirror.pod(id) && !this.#mirror.isPodGone(id)) await this.read(id).catch((error: unknown) => { throw unjoinable(error); });
    const pod = this.#mirror.pod(id);
    const wanted = container ?? Object.keys(this.#mirror.sandbox(id)?.record.containerImages ?? {})[0];
    return pod && wanted !== undefined && !this.#mirror.isPodGone(id) ? { namespace: pod.namespace, name: podNameOf(id), uid: pod.uid, container: wanted } : undefined;
  }
}
