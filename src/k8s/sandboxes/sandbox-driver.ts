import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import type { MirrorReport } from '../../contracts/mirror-report.ts';
import {
  DefinitionRefused,
  LeaseLost,
  OutcomeUnknown,
  RecordConflict,
  type DriverDescription,
  type ExecOutcome,
  type ExecRequest,
  type LogBatch,
  type LogFollowing,
  type LogRequest,
  type LogTail,
  type PortConnection,
  type ProbeOutcome,
  type SandboxDriver,
  type Terminal,
  type TerminalRequest,
} from '../../contracts/sandbox-driver.ts';
import type { Volumes } from '../../contracts/volumes.ts';
import { podNameOf, type InstanceId, type Revision } from '../../model/identifiers.ts';
import { changedClaim, type ClaimChange } from '../../model/claim-change.ts';
import type { LaunchOrder, Claim, End, InstanceFact, InstanceRecord } from '../../model/sandbox.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';
import type { ApiClient, ApiServer } from '../api/api-calls.ts';
import { isAbsent, isRefused, notFound } from '../api/api-errors.ts';
import { DoubtedPods } from './pods/doubted-pods.ts';
import { PodCreator } from './pods/pod-creator.ts';
import { checkVolumes } from './check-volumes.ts';
import { IdleLook } from './idle-look.ts';
import { imageFaultOf } from './image-reference.ts';
import { InstanceAccess, type PodStreams } from './instance-access.ts';
import { InstanceMirror } from './instance-mirror.ts';
import { listPageOf } from '../api/api-objects.ts';
import { InstanceReflectors } from './instance-reflectors.ts';
import { PodRemoval } from './pods/pod-removal.ts';
import { podPath, storedPodOf, type PodSettings, type StoredPod } from './pods/pod-resource.ts';
import type { OutdatedReport } from '../records/resource-records.ts';
import type { Seals } from '../records/seals.ts';
import { SilentNodes } from './silent-nodes.ts';
import { placedProbes } from './pods/probe-places.ts';
import {
  REQUEST_LABEL,
  requestLabel,
  type Rewriting,
  rewritten,
  sandboxPath,
  sandboxesPath,
  storedFrom,
  storedSandboxOf,
  type StoredSandbox,
} from './sandbox-resource.ts';

export interface KubernetesDriverDeps {
  readonly api: ApiServer;
  readonly streams: PodStreams;
  readonly pods: PodSettings;
  /**
   * The volumes that Pods may mount, looked at again at each launch: a definition may be older than
   * the volume, or not a daemon's.
   */
  readonly volumes: Volumes;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Told of each record of a later version: while there is one this replica must lead nothing. */
  readonly outdated: OutdatedReport;
  readonly seals: Seals;
  /**
   * The team of a namespace; undefined where it is no team's, and what is there somebody else's.
   */
  readonly teamOf: (namespace: string) => string | undefined;
}

/** Writes of one change, each at the revision that was read last. */
const MOST_ATTEMPTS = 4;

/** Records that one request can have claimed, with what others marked alike. */
const MOST_OF_REQUEST = 4;

/**
 * Runs instances as Pods: each has a `Sandbox` record of its own, which is written before its Pod
 * and owns it. A claim is one conditional PUT of the record, a retirement one conditional DELETE of
 * it; the API server decides who was first.
 */
export class KubernetesSandboxDriver implements SandboxDriver {
  readonly files: InstanceAccess['files'];
  readonly processes: InstanceAccess['processes'];
  readonly #deps: KubernetesDriverDeps;
  /** For what a request waits for. */
  readonly #soon: ApiClient;
  readonly #background: ApiClient;
  readonly #mirror: InstanceMirror;
  readonly #reflectors: InstanceReflectors;
  readonly #doubted: DoubtedPods;
  readonly #podCreator: PodCreator;
  readonly #access: InstanceAccess;
  readonly #silentNodes: SilentNodes;
  readonly #removal: PodRemoval;
  readonly #idle: IdleLook;
  readonly #looking = new Set<InstanceId>();
  #report: (fact: InstanceFact) => void = () => {};
  #stopped = false;

  constructor(deps: KubernetesDriverDeps) {
    this.#deps = deps;
    this.#soon = deps.api.lane('claims');
    this.#background = deps.api.lane('background');
    this.#silentNodes = new SilentNodes({
      ...deps,
      changed: (name) => {
        this.#mirror.nodeChanged(name);
      },
    });
    deps.streams.whenSilent((name) => {
      this.#silentNodes.noAnswer(name);
    });
    this.#mirror = new InstanceMirror({
      idleTrouble: (name) => this.#silentNodes.trouble(name),
      report: (fact) => {
        this.#report(fact);
      },
      missesPod: (id) => {
        this.#lookForPod(id);
      },
      nodeTrouble: (name) => this.#reflectors.nodeTrouble(name),
      podGone: (uid) => {
        deps.streams.gone(uid);
      },
      laterSandbox: (key, record) => {
        deps.outdated(
          `sandboxes: ${key}`,
          record && `was written by a later version (format ${record.laterFormat})`,
        );
      },
    });
    this.#reflectors = new InstanceReflectors({ ...deps, mirror: this.#mirror });
    this.#doubted = new DoubtedPods({ ...deps, api: this.#background, mirror: this.#mirror });
    this.#podCreator = new PodCreator({
      api: this.#background,
      untilIdleEnough: () => deps.api.calm('claims'),
      mirror: this.#mirror,
      pods: deps.pods,
    });
    this.#access = new InstanceAccess({
      ...deps,
      api: this.#soon,
      mirror: this.#mirror,
      silentNodes: this.#silentNodes,
      read: (id) => this.read(id),
    });
    this.processes = this.#access.processes;
    this.files = this.#access.files;
    this.#removal = new PodRemoval({
      soon: this.#soon,
      background: this.#background,
      mirror: this.#mirror,
      clock: deps.clock,
      graceSeconds: deps.pods.terminationGraceSeconds,
      gone: (uid) => {
        deps.streams.gone(uid);
      },
      run: (work, running) => {
        this.#run(work, running);
      },
    });
    this.#idle = new IdleLook({
      api: this.#soon,
      clock: deps.clock,
      mirror: this.#mirror,
      read: (stored) => this.#factOf(stored),
      podsReached: (revision, withinMs) => this.#reflectors.podsReached(revision, withinMs),
      lookAtNode: (name) => this.#reflectors.lookAtNode(name),
    });
  }

  describe(): DriverDescription {
    return {
      isolation: 'pod',
      pauses: false,
      warnings: [],
      problems: this.#reflectors.problems(),
      work: { looks: this.#looking.size },
    };
  }

  reflectors(): readonly MirrorReport[] {
    return this.#reflectors.reports();
  }

  async watch(report: (fact: InstanceFact) => void): Promise<void> {
    this.#report = report;
    this.#doubted.start();
    await this.#reflectors.start();
  }

  caughtUp(): Promise<void> {
    return this.#reflectors.caughtUp();
  }

  check(definition: InstanceDefinition): void {
    definition.containers.forEach(({ image }, index) => {
      const fault =
        image === 'host' || /^(?:dir|oci):/.test(image)
          ? `must be the name of a container image; "${image.slice(0, 80)}" is for the ` +
            'embedded daemon'
          : imageFaultOf(image);
      if (fault !== undefined)
        throw new DefinitionRefused(`spec.containers[${index}].image: ${fault}`);
    });
    const [homeless] = placedProbes(definition).homeless;
    if (homeless !== undefined)
      throw new DefinitionRefused(
        `spec.endpoints: the readiness probe of "${homeless}" has no place: a Pod runs ` +
          'one for each container, and each has one already',
      );
    if (definition.network !== 'none')
      throw new DefinitionRefused(
        `spec.network: "${definition.network}" is for the embedded daemon; a Pod has a ` +
          'network of its own',
      );
  }

  expect(): void {}

  async launch(launchOrder: LaunchOrder, permitted: () => boolean): Promise<InstanceRecord> {
    this.check(launchOrder.definition);
    await checkVolumes(launchOrder, this.#deps.volumes);
    return await this.#podCreator.create(launchOrder, () => {
      if (!permitted()) throw new LeaseLost('another replica launches');
    });
  }

  async claim(
    seen: InstanceRecord,
    claim: Claim,
    permitted?: () => boolean,
  ): Promise<InstanceRecord> {
    const { stored, pod } = this.#seen(seen.id, seen.revision);
    return await this.#rewrite(
      { ...seen, state: 'claimed', claim },
      { ...stored, podUid: pod?.uid },
      permitted,
    );
  }

  async amend(id: InstanceId, change: ClaimChange, seen: Revision): Promise<InstanceRecord> {
    if (!('idleTimeoutMs' in change)) throw new DefinitionRefused('Pods can not be paused');
    const { stored } = this.#seen(id, seen);
    const { claim } = stored.record;
    if (!claim) throw new RecordConflict('it is not claimed');
    return await this.#rewrite({ ...stored.record, claim: changedClaim(claim, change) }, stored);
  }

  async bump(id: InstanceId, revision: Revision): Promise<InstanceRecord> {
    const { stored } = this.#seen(id, revision);
    if (stored.record.claim) throw new RecordConflict('it is claimed');
    return await this.#rewrite(stored.record, { ...stored, bumped: true });
  }

  /**
   * Whatever the mirror shows, the API server decides: a mirror may be behind, or of a store that
   * was replaced.
   */
  async retire(id: InstanceId, seen: Revision, namespace: string): Promise<void> {
    const known = this.#mirror.sandbox(id);
    if (known?.record.claim) throw new RecordConflict('it is claimed');
    try {
      await this.#background.remove(sandboxPath(namespace, id), {
        ...(known ? { uid: known.uid } : {}),
        resourceVersion: seen,
        propagationPolicy: 'Background',
      });
    } catch (error) {
      if (isRefused(error, 409))
        throw new RecordConflict('it was claimed, or changed', { cause: error });
      if (!isAbsent(error)) throw error;
    }
    const pod = this.#mirror.pod(id);
    if (known) this.#mirror.dropSandbox(id, known.uid);
    if (pod) this.#removal.removeLater(pod);
  }

  /**
   * The end of its Pod is the durable note, and says `deleted`; another reason is written into the
   * record before.
   */
  async release(id: InstanceId, end: End): Promise<void> {
    const pod = this.#mirror.pod(id);
    const isOver = pod?.vitals.kind === 'gone' && !pod.vitals.remains;
    if (pod?.endsBy !== undefined || isOver || this.#mirror.isPodGone(id)) return;
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
    await this.#background
      .remove(sandboxPath(known.record.poolOwner.namespace, id), {
        uid: known.uid,
        propagationPolicy: 'Background',
      })
      .catch(notFound);
    this.#mirror.dropSandbox(id, known.uid);
  }

  async read(id: InstanceId): Promise<InstanceFact> {
    const known =
      this.#mirror.sandbox(id)?.record.poolOwner.namespace ?? this.#mirror.pod(id)?.namespace;
    if (known === undefined)
      return {
        id,
        record: undefined,
        vitals: { kind: 'gone', exitCode: null, reason: 'there is no such sandbox' },
      };
    return await this.#readIn(known, id);
  }

  /** An id that no mirror shows is looked for in the namespace given. */
  async confirm(id: InstanceId, namespace: string): Promise<InstanceFact> {
    return await this.#readIn(
      this.#mirror.sandbox(id)?.record.poolOwner.namespace ?? namespace,
      id,
    );
  }

  async idle(
    poolUid: string,
    namespace: string,
    atLeast: number,
  ): Promise<readonly InstanceFact[]> {
    return await this.#idle.look(poolUid, namespace, atLeast);
  }

  async findClaimByKey(markKey: string, namespace: string): Promise<readonly InstanceFact[]> {
    const found = await this.#soon.list(sandboxesPath(namespace), {
      labelSelector: `${REQUEST_LABEL}=${requestLabel(markKey)}`,
      limit: MOST_OF_REQUEST,
    });
    const stored = listPageOf(found).items.flatMap((object) => storedSandboxOf(object) ?? []);
    return await Promise.all(stored.map((each) => this.#factOf(each)));
  }

  exec(id: InstanceId, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome> {
    return this.#access.exec(id, request, signal);
  }

  attach(id: InstanceId, request: TerminalRequest): Promise<Terminal> {
    return this.#access.attach(id, request);
  }

  logs(id: InstanceId, request: LogRequest): Promise<LogTail> {
    return this.#access.logs(id, request);
  }

  followLogs(id: InstanceId, from: LogFollowing, signal: AbortSignal): AsyncIterable<LogBatch> {
    return this.#access.followLogs(id, from, signal);
  }

  probe(id: InstanceId): Promise<readonly ProbeOutcome[]> {
    return this.#access.probe(id);
  }

  dial(id: InstanceId, port: number, signal: AbortSignal): Promise<PortConnection> {
    return this.#access.dial(id, port, signal);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#report = () => {};
    this.#doubted.stop();
    this.#silentNodes.stop();
    await Promise.all([this.#reflectors.stop(), this.#deps.streams.stop()]);
  }

  /**
   * Finds what a conditional write needs to know. Throws RecordConflict where the record is no more
   * as it was seen.
   */
  #seen(
    id: InstanceId,
    revision: Revision,
  ): { readonly stored: StoredSandbox; readonly pod: StoredPod | undefined } {
    const stored = this.#mirror.sandbox(id);
    if (!stored || stored.terminating || stored.record.revision !== revision)
      throw new RecordConflict('the record is no more as it was seen');
    return { stored, pod: this.#mirror.pod(id) };
  }

  async #rewrite(
    record: InstanceRecord,
    of: Omit<Rewriting, 'seals'>,
    permitted?: () => boolean,
  ): Promise<InstanceRecord> {
    try {
      const stored = storedFrom(
        await this.#soon.replace(
          sandboxPath(record.poolOwner.namespace, record.id),
          rewritten(record, { ...of, seals: this.#deps.seals }),
          { permitted },
        ),
      );
      this.#mirror.putSandbox(stored, { quietly: true });
      return stored.record;
    } catch (error) {
      if (isRefused(error, 409) || isAbsent(error))
        throw new RecordConflict('the record moved, or is gone', { cause: error });
      throw error;
    }
  }

  async #readIn(namespace: string, id: InstanceId): Promise<InstanceFact> {
    const look = this.#mirror.look(namespace, id);
    const found = await this.#soon.get(sandboxPath(namespace, id)).catch(notFound);
    const stored = found === undefined ? undefined : storedFrom(found);
    const pod = await this.#readPod(namespace, id);
    look.foundPod(pod);
    look.foundSandbox(stored);
    if (stored && pod?.uid !== stored.podUid) this.#mirror.lostPod(stored);
    return this.#found(id, stored);
  }

  /** Reads the Pod of a record that was read, uncached, and tells what is known of the sandbox. */
  async #factOf(stored: StoredSandbox): Promise<InstanceFact> {
    const { id, poolOwner } = stored.record;
    const look = this.#mirror.look(poolOwner.namespace, id);
    const pod = await this.#readPod(poolOwner.namespace, id);
    look.foundPod(pod);
    if (pod?.uid !== stored.podUid) this.#mirror.lostPod(stored);
    return this.#found(id, stored);
  }

  async #readPod(namespace: string, id: InstanceId): Promise<StoredPod | undefined> {
    const found = await this.#soon.get(podPath(namespace, podNameOf(id))).catch(notFound);
    const pod = found === undefined ? undefined : storedPodOf(found);
    if (pod) this.#removal.hurry(pod);
    return pod;
  }

  /**
   * Tells what is known after a look: what the watch told meanwhile is newer than what was found.
   * `seen`: the record, as it was before its Pod was looked for. One that was unclaimed then may
   * have got its Pod since, and have been claimed.
   */
  #found(id: InstanceId, seen: StoredSandbox | undefined): InstanceFact {
    const isPodless =
      !this.#mirror.sandbox(id) || seen?.record.claim !== undefined || this.#mirror.isPodGone(id);
    if (isPodless && !this.#mirror.pod(id)) this.#mirror.foundNoPod(id);
    return (
      this.#mirror.fact(id) ?? {
        id,
        record: undefined,
        vitals: { kind: 'gone', exitCode: null, reason: 'there is no such Pod' },
      }
    );
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
        if (isRefused(error, 422)) return; // by an older definition, which lacks the reason
        if (!(error instanceof RecordConflict) || attempt === MOST_ATTEMPTS) throw error;
        await this.#readIn(stored.record.poolOwner.namespace, id);
      }
    }
  }

  #lookForPod(id: InstanceId): void {
    if (this.#looking.has(id) || this.#stopped) return;
    this.#looking.add(id);
    this.#run(
      'look for the Pod of a claimed sandbox',
      this.read(id).finally(() => {
        this.#looking.delete(id);
      }),
    );
  }

  #run(work: string, running: Promise<unknown>): void {
    running.catch((error: unknown) => {
      if (!this.#stopped) this.#deps.log.warn({ work, error }, 'background work failed');
    });
  }
}
