import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import {
  AgentProcesses,
  listOf,
  requireWithoutNul,
} from '../../contracts/agent/agent-processes.ts';
import { PROCESS_ID, toldOf } from '../../contracts/agent/process-record.ts';
import type { AgentWay, ProcessPlace } from '../../contracts/agent/process-calls.ts';
import type { Clock } from '../../contracts/clock.ts';
import {
  ProcessesFull,
  ProcessGone,
  ProcessRefused,
  type OutputRequest,
  type ProcessOrder,
  type StartedReading,
} from '../../contracts/processes.ts';
import {
  InstanceGone,
  NotJoinable,
  OutcomeUnknown,
  type Terminal,
  type TerminalRequest,
} from '../../contracts/sandbox-driver.ts';
import { FairSlots } from '../../lib/fair-slots.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { ProcessFact } from '../../model/process.ts';
import { connectHolder, isTerminal } from '../spawner/processes/holder-socket.ts';
import type { ProcessRefusal } from '../spawner/processes/process-messages.ts';
import { HolderTerminal } from './holder-terminal.ts';
import type { SpawnerClient } from './spawner-client.ts';

export interface EmbeddedProcessesDeps {
  readonly spawner: Pick<SpawnerClient, 'hold'>;
  readonly isRunning: (id: InstanceId) => boolean;
  /** See `SpawnerPaths`. */
  readonly folder: string;
  readonly clock: Clock;
  /** By default the processors of this machine. */
  readonly processors?: number;
}

const MOST_WAITING = 4_096;
const MOST_WAITING_OF_TENANT = 1_024;
/** A longer start mostly waits for its sandbox's CPU time. */
const TURN_MS = 50;
/** The record may be forgotten at the same time. */
const MOST_STARTS = 3;

/**
 * The spawner starts the holder of a process, and all other calls go to it. Starts of one tenant
 * use at most half of the processors, so the daemon can still answer.
 */
export class EmbeddedProcesses extends AgentProcesses<InstanceId> {
  readonly #deps: EmbeddedProcessesDeps;
  readonly #starts: FairSlots;

  constructor(deps: EmbeddedProcessesDeps) {
    const { folder, clock, isRunning, processors = availableParallelism() } = deps;
    super({
      clock,
      open: (place) => wayTo(folder, place),
      names: () => [],
      notBegun: whyNotBegun,
      pause: (ms) => new Promise((resolve) => void clock.at(clock.now() + ms, () => resolve(true))),
      keyOf: (id) => id,
      enter: async (id, way) => {
        if (!isRunning(id)) throw new InstanceGone('the sandbox is not running');
        return await way([id]);
      },
    });
    this.#deps = deps;
    this.#starts = new FairSlots({
      most: () => 2 * processors,
      mostOfTenant: () => Math.ceil(processors / 2),
      mostWaiting: MOST_WAITING,
      mostWaitingOfTenant: MOST_WAITING_OF_TENANT,
    });
  }

  start(id: InstanceId, order: ProcessOrder): Promise<ProcessFact> {
    return this.#started(id, order, (place) => this.factOf(place, { tokens: ['find'] }));
  }

  run(id: InstanceId, order: ProcessOrder, { pace }: OutputRequest): Promise<StartedReading> {
    const tokens = ['find', 'follow', '1', ...(pace ? ['pace', '1'] : [])];
    return this.#started(id, order, (place) => this.read(place, { tokens }, pace));
  }

  list(id: InstanceId): Promise<readonly ProcessFact[]> {
    return this.enter(id, async () => {
      const ids = await readdir(join(this.#deps.folder, id)).catch(() => []);
      const listed = ids.filter((processId) => !isTerminal(processId));
      const facts = await Promise.all(listed.map((processId) => this.find(id, processId)));
      return listOf(facts.flatMap((fact) => fact ?? []));
    });
  }

  /** The process is not listed, and ends with its reader. */
  async attach(id: InstanceId, { argv, env, cols, rows }: TerminalRequest): Promise<Terminal> {
    const order: BoundOrder = {
      processId: `.${randomBytes(12).toString('hex')}`,
      tenant: id,
      argv,
      env,
      tty: { cols, rows },
      stdin: true,
      bound: true,
    };
    const tokens = ['find', 'follow', '1', 'pace', '1'];
    const place = { target: id, processId: order.processId };
    const reading = await this.#started(id, order, () => this.read(place, { tokens }, true)).catch(
      (error: unknown) => {
        const isRefused = error instanceof ProcessRefused || error instanceof ProcessesFull;
        throw isRefused ? new NotJoinable(error.message) : error;
      },
    );
    const hangUp = async (): Promise<void> => {
      await this.calls.ask(place, { tokens: ['hang-up'], removes: true });
    };
    return new HolderTerminal({ processes: this, hangUp, id, reading });
  }

  async #started<T>(
    id: InstanceId,
    order: BoundOrder,
    ask: (place: ProcessPlace<InstanceId>) => Promise<T>,
  ): Promise<T> {
    requireWithoutNul(order);
    const { container: _one, tag: _told, ...start } = order;
    const told = toldOf(order, this.#deps.clock.now(), order.tenant);
    const release = await this.#turn(order);
    try {
      for (let tries = 1; ; tries += 1) {
        const refusal = await this.#deps.spawner.hold(id, { ...start, told });
        if (refusal) throw errorFor(refusal);
        try {
          return await ask({ target: id, processId: order.processId });
        } catch (error) {
          if (!(error instanceof ProcessGone) || tries === MOST_STARTS) throw error;
        }
      }
    } finally {
      release();
    }
  }

  /** The slot is freed after 50 ms anyway. */
  async #turn({ tenant }: ProcessOrder): Promise<() => void> {
    const { clock } = this.#deps;
    const full = () =>
      new ProcessesFull('tenant', 'too many of your processes are waiting to start');
    const release = await this.#starts.take(tenant, { full });
    const callOff = clock.at(clock.now() + TURN_MS, release);
    return () => {
      callOff();
      release();
    };
  }
}

interface BoundOrder extends ProcessOrder {
  readonly bound?: true;
}

const wayTo = (
  folder: string,
  { target, processId = '' }: ProcessPlace<InstanceId>,
): Promise<AgentWay> => {
  if (!PROCESS_ID.test(processId)) return Promise.reject(gone());
  try {
    const way = connectHolder(join(folder, target), processId);
    return Promise.resolve(Object.assign(way, { hold: () => undefined }));
  } catch (error) {
    return Promise.reject(whyNotBegun(error));
  }
};

const gone = (): ProcessGone => new ProcessGone('the process does not exist');

/** The socket has no holder, or a killed one. */
const ABSENT: ReadonlySet<unknown> = new Set(['ENOENT', 'ECONNREFUSED']);

const whyNotBegun = (why: unknown): Error =>
  why instanceof Error && 'code' in why && ABSENT.has(why.code)
    ? gone()
    : new OutcomeUnknown('the holder of the process does not answer', { cause: why });

const errorFor = ({ kind, message, field = 'command', of = 'machine' }: ProcessRefusal): Error => {
  switch (kind) {
    case 'instance-gone':
      return new InstanceGone(message);
    case 'not-joinable':
      return new NotJoinable(message);
    case 'refused':
      return new ProcessRefused(field, message);
    case 'full':
      return new ProcessesFull(of, message);
  }
};
