import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import type { MirrorReport } from '../../contracts/mirror-report.ts';
import {
  LeaseLost,
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
import type { InstanceId, Revision } from '../../model/identifiers.ts';
import type { ClaimChange } from '../../model/claim-change.ts';
import type { LaunchOrder, Claim, End, InstanceFact, InstanceRecord } from '../../model/sandbox.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';
import type { ApiClient, ApiServer } from '../api/api-calls.ts';
import { AgentMaps } from './pods/agent-maps.ts';
import { DoubtedPods } from './pods/doubted-pods.ts';
import { PodCreator } from './pods/pod-creator.ts';
import { checkVolumes } from './check-volumes.ts';
import { IdleLook } from './idle-look.ts';
import { InstanceAccess, type PodStreams } from './instance-access.ts';
import { InstanceMirror } from './instance-mirror.ts';
import { InstanceReflectors } from './instance-reflectors.ts';
import { PodRemoval } from './pods/pod-removal.ts';
import type { PodSettings } from './pods/pod-resource.ts';
import type { OutdatedReport } from '../api/resource.ts';
import type { Seals } from '../api/seals.ts';
import { SilentNodes } from './silent-nodes.ts';
import { checkDefinition } from './check-definition.ts';
import { InstanceReads } from './instance-reads.ts';
import { InstanceWriter } from './instance-writer.ts';

export interface KubernetesDriverDeps {
  readonly api: ApiServer;
  readonly streams: PodStreams;
  readonly pods: PodSettings;
  /** Checked at each launch, since a definition may be older than the volume or made by hand. */
  readonly volumes: Volumes;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** While a record of a later version exists, this replica must not lead anything. */
  readonly outdated: OutdatedReport;
  readonly seals: Seals;
  /** Undefined for namespaces whose objects are not Sandpool's. */
  readonly teamOf: (namespace: string) => string | undefined;
}

/**
 * Each instance has its own `Sandbox` record, which is written first and owns the Pod. A claim is a
 * conditional PUT of the record, and a retirement a conditional DELETE, so the API server decides
 * which came first.
 */
export class KubernetesSandboxDriver implements SandboxDriver {
  readonly files: InstanceAccess['files'];
  readonly processes: InstanceAccess['processes'];
  readonly #deps: KubernetesDriverDeps;
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
  readonly #reads: InstanceReads;
  readonly #writer: InstanceWriter;
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
    this.#mirror = this.#mirrorOf(deps);
    this.#reflectors = new InstanceReflectors({ ...deps, mirror: this.#mirror });
    this.#doubted = new DoubtedPods({ ...deps, api: this.#background, mirror: this.#mirror });
    this.#podCreator = new PodCreator({
      api: this.#background,
      untilIdleEnough: () => deps.api.calm('claims'),
      mirror: this.#mirror,
      pods: deps.pods,
      agentMaps: new AgentMaps({ ...deps, api: this.#background, agents: deps.pods.agents }),
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
    this.#removal = this.#removalOf(deps);
    this.#reads = new InstanceReads({
      api: this.#soon,
      mirror: this.#mirror,
      hurry: (pod) => {
        this.#removal.hurry(pod);
      },
    });
    this.#writer = new InstanceWriter({
      soon: this.#soon,
      background: this.#background,
      mirror: this.#mirror,
      removal: this.#removal,
      reads: this.#reads,
    });
    this.#idle = new IdleLook({
      api: this.#soon,
      clock: deps.clock,
      mirror: this.#mirror,
      read: (stored) => this.#reads.factOf(stored),
      podsReached: (...of) => this.#reflectors.podsReached(...of),
      lookAtNode: (name) => this.#reflectors.lookAtNode(name),
    });
  }

  #mirrorOf({ streams, outdated }: KubernetesDriverDeps): InstanceMirror {
    return new InstanceMirror({
      idleTrouble: (name) => this.#silentNodes.trouble(name),
      report: (fact) => {
        this.#report(fact);
      },
      missesPod: (id) => {
        this.#lookForPod(id);
      },
      nodeTrouble: (name) => this.#reflectors.nodeTrouble(name),
      nodeLeaves: (name) => this.#reflectors.nodeLeaves(name),
      recordIn: (namespace) => {
        this.#reflectors.followPods(namespace);
      },
      podsTrouble: (namespace) => this.#reflectors.podsTrouble(namespace),
      podGone: (uid) => {
        streams.gone(uid);
      },
      laterSandbox: (key, record) => {
        outdated(
          `sandboxes: ${key}`,
          record && `was written by a later version (format ${record.laterFormat})`,
        );
      },
    });
  }

  #removalOf({ clock, pods, streams }: KubernetesDriverDeps): PodRemoval {
    return new PodRemoval({
      soon: this.#soon,
      background: this.#background,
      mirror: this.#mirror,
      clock,
      graceSeconds: pods.terminationGraceSeconds,
      gone: (uid) => {
        streams.gone(uid);
      },
      run: (work, running) => {
        this.#run(work, running);
      },
    });
  }

  describe(): DriverDescription {
    return {
      isolation: 'pod',
      pauses: false,
      warnings: this.#reflectors.warnings(),
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
    checkDefinition(definition, this.#deps.pods.agents);
  }

  expect(): void {}

  async launch(launchOrder: LaunchOrder, permitted: () => boolean): Promise<InstanceRecord> {
    this.check(launchOrder.definition);
    await checkVolumes(launchOrder, this.#deps.volumes);
    return await this.#podCreator.create(launchOrder, () => {
      if (!permitted()) throw new LeaseLost('another replica launches');
    });
  }

  claim(seen: InstanceRecord, claim: Claim, permitted?: () => boolean): Promise<InstanceRecord> {
    return this.#writer.claim(seen, claim, permitted);
  }

  amend(id: InstanceId, change: ClaimChange, seen: Revision): Promise<InstanceRecord> {
    return this.#writer.amend(id, change, seen);
  }

  bump(id: InstanceId, revision: Revision): Promise<InstanceRecord> {
    return this.#writer.bump(id, revision);
  }

  retire(id: InstanceId, seen: Revision, namespace: string): Promise<void> {
    return this.#writer.retire(id, seen, namespace);
  }

  release(id: InstanceId, end: End): Promise<void> {
    return this.#writer.release(id, end);
  }

  forget(id: InstanceId): Promise<void> {
    return this.#writer.forget(id);
  }

  read(id: InstanceId): Promise<InstanceFact> {
    return this.#reads.read(id);
  }

  confirm(id: InstanceId, namespace: string): Promise<InstanceFact> {
    return this.#reads.confirm(id, namespace);
  }

  async idle(
    poolUid: string,
    namespace: string,
    atLeast: number,
  ): Promise<readonly InstanceFact[]> {
    return await this.#idle.look(poolUid, namespace, atLeast);
  }

  findClaimByKey(markKey: string, namespace: string): Promise<readonly InstanceFact[]> {
    return this.#reads.findClaimByKey(markKey, namespace);
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
      if (!this.#stopped) this.#deps.log.warn({ work, error }, 'background-work-failed');
    });
  }
}
