import type { Clock } from '../../contracts/clock.ts';
import {
  InstanceGone,
  LogsGone,
  type ExecOutcome,
  type ExecRequest,
  type LogBatch,
  type LogFollowing,
  type LogRequest,
  type LogTail,
  type PortConnection,
  type ProbeOutcome,
  type Terminal,
  type TerminalRequest,
} from '../../contracts/sandbox-driver.ts';
import { podNameOf, type InstanceId } from '../../model/identifiers.ts';
import type { ApiClient } from '../api/api-calls.ts';
import { InstanceFiles } from './instance-files.ts';
import { InstanceProcesses } from '../processes/instance-processes.ts';
import type { InstanceMirror } from './instance-mirror.ts';
import { unjoinable, type PodTarget } from './pods/pod-presence.ts';
import { PodProbes } from './pods/pod-probes.ts';
import type { PodStreams as RealPodStreams } from '../streams/pod-streams.ts';
import type { SilentNodes } from './silent-nodes.ts';

/** The driver reports ended Pods to it, and stops it. */
export type PodStreams = Pick<RealPodStreams, keyof RealPodStreams>;

export interface InstanceAccessDeps {
  readonly clock: Clock;
  readonly api: ApiClient;
  readonly streams: PodStreams;
  readonly mirror: InstanceMirror;
  readonly silentNodes: Pick<SilentNodes, 'answered'>;
  readonly read: (id: InstanceId) => Promise<unknown>;
}

/** Opens connections into instances' Pods, as `SandboxDriver` promises. */
export class InstanceAccess {
  readonly processes: InstanceProcesses;
  readonly files: InstanceFiles;
  readonly #deps: InstanceAccessDeps;
  readonly #probes: PodProbes;

  constructor(deps: InstanceAccessDeps) {
    this.#deps = deps;
    this.#probes = new PodProbes(deps);
    this.files = new InstanceFiles({
      enter: (id, container, way) => this.#enter(id, container, way),
      openAgent: (pod) => deps.streams.openAgent(pod),
      clock: deps.clock,
    });
    this.processes = new InstanceProcesses({
      enter: (id, way) => this.enterAny(id, way),
      openAgent: (pod) => deps.streams.openAgent(pod),
      pause: (ms) => deps.streams.pause(ms),
      clock: deps.clock,
    });
  }

  exec(id: InstanceId, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome> {
    return this.#enter(id, request.container, (pod) =>
      this.#deps.streams.exec(pod, request, signal),
    );
  }

  attach(id: InstanceId, request: TerminalRequest): Promise<Terminal> {
    return this.#enter(id, request.container, (pod) => this.#deps.streams.attach(pod, request));
  }

  probe(id: InstanceId): Promise<readonly ProbeOutcome[]> {
    return this.#enter(id, undefined, (pod) => this.#probes.run(pod));
  }

  dial(id: InstanceId, port: number, signal: AbortSignal): Promise<PortConnection> {
    return this.#enter(id, undefined, (pod) => this.#deps.streams.dial(pod, port, signal));
  }

  async logs(id: InstanceId, request: LogRequest): Promise<LogTail> {
    return await this.#deps.streams.logs(await this.#logged(id, request.container), request);
  }

  async *followLogs(
    id: InstanceId,
    { after, container }: LogFollowing,
    signal: AbortSignal,
  ): AsyncIterable<LogBatch> {
    yield* this.#deps.streams.followLogs(await this.#logged(id, container), after, signal);
  }

  /** Passes the first container first. Rejects with InstanceGone. */
  async enterAny<T>(
    id: InstanceId,
    way: (containers: readonly PodTarget[]) => Promise<T>,
  ): Promise<T> {
    return await this.#enter(id, undefined, (pod) => way(this.#containers(id, pod)));
  }

  #containers(id: InstanceId, first: PodTarget): readonly PodTarget[] {
    const { mirror } = this.#deps;
    const names =
      mirror.pod(id)?.containers ??
      Object.keys(mirror.sandbox(id)?.record.containerImages ?? { [first.container]: '' });
    return names.map((container) => ({ ...first, container }));
  }

  async #enter<T>(
    id: InstanceId,
    container: string | undefined,
    way: (pod: PodTarget) => Promise<T>,
  ): Promise<T> {
    const target = await this.#target(id, container);
    if (!target) throw new InstanceGone('its Pod is gone');
    const { silentNodes } = this.#deps;
    const done = await way(target);
    silentNodes.answered(target.node ?? '');
    return done;
  }

  async #logged(id: InstanceId, container: string | undefined): Promise<PodTarget> {
    const target = await this.#target(id, container);
    if (!target)
      throw new LogsGone(
        "a sandbox's log is deleted with its Pod; use the cluster's own log store",
      );
    return target;
  }

  /** Undefined if the Pod is gone. Reads a Pod that no watch has reported yet. */
  async #target(id: InstanceId, container: string | undefined): Promise<PodTarget | undefined> {
    const { mirror, read } = this.#deps;
    if (!mirror.pod(id) && !mirror.isPodGone(id))
      await read(id).catch((error: unknown) => {
        throw unjoinable(error);
      });
    const pod = mirror.pod(id);
    const first =
      pod?.containers?.[0] ?? Object.keys(mirror.sandbox(id)?.record.containerImages ?? {})[0];
    const wanted = container ?? first;
    if (!pod || wanted === undefined || mirror.isPodGone(id)) return undefined;
    return {
      namespace: pod.namespace,
      name: podNameOf(id),
      uid: pod.uid,
      container: wanted,
      node: pod.nodeName,
    };
  }
}
