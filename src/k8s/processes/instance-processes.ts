import { Slices } from '../../lib/slices.ts';
import {
  AgentProcesses,
  listOf,
  requireWithoutNul,
} from '../../contracts/agent/agent-processes.ts';
import type {
  AgentWay,
  ProcessCallsDeps,
  ProcessPlace,
  ProcessQuestion,
} from '../../contracts/agent/process-calls.ts';
import { readProcess, toldOf } from '../../contracts/agent/process-record.ts';
import { InstanceGone } from '../../contracts/sandbox-driver.ts';
import {
  ProcessesNotProvided,
  ProcessRefused,
  type OutputRequest,
  type ProcessOrder,
  type StartedReading,
} from '../../contracts/processes.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { ProcessFact, ProcessId } from '../../model/process.ts';
import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';
import { agentOrder } from '../streams/agent-order.ts';
import { NoAgent } from '../streams/no-agent.ts';

export interface InstanceProcessesDeps extends Pick<
  ProcessCallsDeps<PodTarget>,
  'pause' | 'clock'
> {
  readonly openAgent: (pod: PodTarget) => Promise<AgentWay>;
  readonly enter: <T>(
    id: InstanceId,
    way: (containers: readonly PodTarget[]) => Promise<T>,
  ) => Promise<T>;
}

/** Bytes of a sandbox's list, since arguments may be long. */
const LONGEST_LIST = 16 << 20;
const SLICE_MS = 2;
const LONGEST_ROOM = 32;

/**
 * The agent in a container starts each process and stays as its holder. So any replica can serve
 * any process, and a process does not depend on a replica.
 */
export class InstanceProcesses extends AgentProcesses<PodTarget> {
  readonly #deps: InstanceProcessesDeps;

  constructor(deps: InstanceProcessesDeps) {
    super({
      ...deps,
      open: ({ target }) => deps.openAgent(target),
      names: ({ target, processId }) => [
        ...['room', roomOf(target)],
        ...(processId === undefined ? [] : ['process', processId]),
      ],
      notBegun: (why) => (why instanceof NoAgent ? new ProcessesNotProvided(why.message) : why),
      keyOf: ({ uid }) => uid,
      enter: (id, way) =>
        deps.enter(id, async (containers) => {
          if (containers.length === 0) throw new InstanceGone('its Pod is gone');
          return await way(containers);
        }),
    });
    this.#deps = deps;
  }

  async start(id: InstanceId, order: ProcessOrder): Promise<ProcessFact> {
    const question = this.#startOf(order);
    return await this.enter(id, async (containers) => {
      const place = placeOf(order, containers);
      return await this.#inTurnOf(place, () => this.factOf(place, question));
    });
  }

  async run(id: InstanceId, order: ProcessOrder, { pace }: OutputRequest): Promise<StartedReading> {
    const question = this.#startOf(order, 'follow', '1', ...(pace ? ['pace', '1'] : []));
    return await this.enter(id, async (containers) => {
      const place = placeOf(order, containers);
      return await this.#inTurnOf(place, () => this.read(place, question, pace));
    });
  }

  list(id: InstanceId): Promise<readonly ProcessFact[]> {
    return this.enter(id, async (containers) => {
      const known = new Map<ProcessId, ProcessFact>();
      const slices = new Slices(SLICE_MS);
      const question = { tokens: ['processes'], limit: LONGEST_LIST };
      for (const records of await Promise.all(
        containers.map((target) => this.calls.ask({ target }, question)),
      ))
        // A tenant may send long records, so yield to other events in between.
        for (const record of records) {
          const fact = readProcess(record);
          if (fact) known.set(fact.processId, fact);
          if (slices.usedUp) await slices.next();
        }
      return listOf([...known.values()]);
    });
  }

  #inTurnOf<T>({ target }: ProcessPlace<PodTarget>, start: () => Promise<T>): Promise<T> {
    return this.turns.take(`start ${target.uid}`, start);
  }

  #startOf(order: ProcessOrder, ...more: readonly string[]): ProcessQuestion {
    requireWithoutNul(order);
    const { tty, timeoutMs, argv, cwd, env } = order;
    return {
      tokens: [
        'start',
        ...(order.stdin ? ['stdin', '1'] : []),
        ...(tty ? ['columns', String(tty.cols), 'rows', String(tty.rows)] : []),
        ...(timeoutMs === undefined ? [] : ['timeout', String(Math.max(1, Math.ceil(timeoutMs)))]),
        ...more,
      ],
      body: agentOrder({ argv, cwd, env, told: toldOf(order, this.#deps.clock.now()) }),
    };
  }
}

/** A Pod's containers share one namespace of process names. */
const roomOf = ({ uid }: PodTarget): string => uid.replaceAll(/[^\w]/g, '').slice(0, LONGEST_ROOM);

const placeOf = (
  { processId, container }: ProcessOrder,
  containers: readonly PodTarget[],
): ProcessPlace<PodTarget> => {
  const target =
    container === undefined
      ? containers[0]
      : containers.find((each) => each.container === container);
  if (!target)
    throw new ProcessRefused('container', `the container "${container ?? ''}" does not exist`);
  return { target, processId };
};
