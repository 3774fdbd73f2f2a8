import { Code, ConnectError, type HandlerContext, type ServiceImpl } from '@connectrpc/connect';
import type { Clock } from '../../../../contracts/clock.ts';
import { ProcessBody, SizeBody } from '../../../resources/processes/schema.ts';
import { check } from '../../../corridor/validation.ts';
import { LONG_BYTES } from '../../../reply/long-answer.ts';
import { jsonLength } from '../../../../lib/json-text.ts';
import { INPUT_BYTES, type ProcessFact } from '../../../../model/process.ts';
import { invalidArgument } from '../../../../model/refusals.ts';
import type { Operations } from '../../../../services/operations.ts';
import type {
  ProcessFollow,
  StartProcessRequest,
} from '../../../../services/processes/process-operations.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';
import type { Homes } from '../files/homes.ts';
import {
  Process,
  Signal,
  type ConnectRequest,
  type ProcessInput,
  type ProcessSelector,
  type StartRequest,
} from '../generated/process.ts';
import { keepaliveMs } from '../keepalives.ts';
import type { Call, FramesToCome } from '../rpc/call-guard.ts';
import { plainStream, type PlainStream, type StreamTerms } from '../rpc/plain-streams.ts';
import { badArgument, notFound, overTime, rpcErrorOf, sandboxEnded } from '../rpc/rpc-errors.ts';
import { callOf, sandboxOf } from '../rpc/rpc-server.ts';
import { processFrames, startOf } from './process-events.ts';

export interface ProcessServiceDeps {
  readonly operations: Pick<
    Operations,
    | 'getSandbox'
    | 'runProcess'
    | 'followProcess'
    | 'listProcesses'
    | 'giveInput'
    | 'signalProcess'
    | 'resizeProcess'
  >;
  readonly homes: Homes;
  readonly clock: Clock;
}

/** How long an ended process can still be connected to. */
const ENDED_MS = 30_000;
const DEFAULT_SIZE = { cols: 80, rows: 24 };

interface ProcessService {
  readonly calls: Partial<ServiceImpl<typeof Process>>;
  readonly streams: readonly PlainStream[];
}

export const processService = (deps: ProcessServiceDeps): ProcessService => {
  const { operations, clock, homes } = deps;
  const followed = new FollowedProcesses();
  /** The latest process with that pid or tag. Refuses a call that a rule holds. */
  const find = async (
    { sandbox, permitProcess }: Call,
    selector: ProcessSelector | undefined,
    endedMs = 0,
  ): Promise<ProcessFact> => {
    const { caller, sandboxId } = sandbox;
    const isMeant = meantBy(selector);
    const by = selector?.selector;
    const known = by?.case === 'pid' ? followed.get(sandboxId, by.value) : undefined;
    const facts = known ? [] : await operations.listProcesses(caller, sandboxId);
    const meant = facts.filter(isMeant);
    const live = meant.find(({ status }) => status === 'Running');
    const since = clock.now() - endedMs;
    const found = known ?? live ?? meant.find(({ endedAt = 0 }) => endedAt > since);
    if (!found) throw notFound(`there is no process ${named(selector)}`);
    permitProcess(found.processId);
    return found;
  };
  const kept = (sandboxId: string, running: ProcessFollow): ProcessFollow => {
    const leave = followed.add(sandboxId, running.fact);
    const close = (): void => {
      leave();
      running.close();
    };
    return { fact: running.fact, output: (signal) => running.output(signal), close };
  };
  const endOfSandbox = async ({ caller, sandboxId }: AddressedSandbox) => {
    try {
      const { status, endReason } = await operations.getSandbox(caller, sandboxId);
      return status === 'Running' ? undefined : sandboxEnded(endReason);
    } catch (error) {
      return rpcErrorOf(error);
    }
  };
  const begun = (
    { call, leftMs, header }: StreamTerms,
    running: ProcessFollow,
    timeoutMs?: number,
  ) => {
    const { signal } = call.sandbox;
    const left = leftMs();
    const frames = processFrames(running, {
      ...{ clock, signal, timeoutMs },
      endOfSandbox: () => endOfSandbox(call.sandbox),
      everyMs: keepaliveMs(header('keepalive-ping-interval')),
      endsAt: left === undefined ? undefined : clock.now() + left,
    });
    return { first: startOf(running.fact), rest: { frames, close: () => running.close() } };
  };
  const give = async (
    { caller, sandboxId }: AddressedSandbox,
    { processId, tty }: ProcessFact,
    { kind, input }: Input,
  ) => {
    if (tty !== (kind === 'pty'))
      throw badArgument(`input: the process has ${tty ? 'a' : 'no'} terminal`);
    for (let at = 0; at < input.length; at += INPUT_BYTES) {
      const bytes = Buffer.from(input.subarray(at, at + INPUT_BYTES));
      await operations.giveInput(caller, sandboxId, { processId, bytes, last: false });
    }
  };

  const start = async (request: StartRequest, terms: StreamTerms) => {
    const { sandbox } = terms.call;
    const order = await orderOf(request, terms, (path) => homes.place(sandbox, path));
    const running = await operations.runProcess(sandbox.caller, sandbox.sandboxId, order);
    return begun(terms, kept(sandbox.sandboxId, running), order.timeoutMs);
  };
  const connect = async ({ process }: ConnectRequest, terms: StreamTerms) => {
    const { caller, sandboxId } = terms.call.sandbox;
    const { processId } = await find(terms.call, process, ENDED_MS);
    const request = { processId, from: 'latest', pace: true };
    const running = await operations.followProcess(caller, sandboxId, request);
    return begun(terms, kept(sandboxId, running));
  };

  const calls: Partial<ServiceImpl<typeof Process>> = {
    start: (request, context) => handedOver(context, (terms) => start(request, terms)),
    connect: (request, context) => handedOver(context, (terms) => connect(request, terms)),
    list: async (_request, context) => {
      const { sandbox, room } = callOf(context);
      const facts = await operations.listProcesses(sandbox.caller, sandbox.sandboxId);
      const running = facts.filter(({ status }) => status === 'Running');
      const bytes = running.reduce((sum, fact) => sum + bytesOf(fact), 0);
      if (bytes > LONG_BYTES) room().hold(bytes);
      return { processes: running.map(infoOf) };
    },
    sendInput: async ({ process, input }, context) => {
      const bytes = bytesIn(input);
      const fact = await find(callOf(context), process);
      await give(sandboxOf(context), fact, bytes);
      return {};
    },
    streamInput: async (requests, context) => {
      let fact: ProcessFact | undefined;
      for await (const { event } of requests) {
        if (event.case === 'start') fact = await find(callOf(context), event.value.process);
        else if (event.case !== 'data') continue;
        else if (!fact) throw badArgument('start: must come before data');
        else await give(sandboxOf(context), fact, bytesIn(event.value.input));
      }
      if (!fact) throw badArgument('start: is required');
      return {};
    },
    closeStdin: async ({ process }, context) => {
      const sandbox = sandboxOf(context);
      const { processId, tty } = await find(callOf(context), process);
      if (tty)
        throw new ConnectError(
          'the input of a terminal cannot be closed; write Ctrl-D',
          Code.FailedPrecondition,
        );
      const input = { processId, bytes: Buffer.alloc(0), last: true };
      await operations.giveInput(sandbox.caller, sandbox.sandboxId, input);
      return {};
    },
    sendSignal: async ({ process, signal }, context) => {
      const sandbox = sandboxOf(context);
      const name = SIGNALS[signal];
      if (!name) throw badArgument('signal: must be SIGNAL_SIGKILL or SIGNAL_SIGTERM');
      const { processId } = await find(callOf(context), process);
      await operations.signalProcess(sandbox.caller, sandbox.sandboxId, { processId, name });
      return {};
    },
    update: async ({ process, pty }, context) => {
      const sandbox = sandboxOf(context);
      const { processId } = await find(callOf(context), process);
      if (!pty?.size) return {};
      const { cols, rows } = pty.size;
      const request = { processId, ...check(SizeBody, { cols, rows }) };
      await operations.resizeProcess(sandbox.caller, sandbox.sandboxId, request);
      return {};
    },
  };
  const { method } = Process;
  const streams = [plainStream(method.start, start), plainStream(method.connect, connect)];
  return { calls, streams };
};

/** The library needs much memory per stream, so it sends only the first message. */
async function* handedOver<T>(
  context: HandlerContext,
  open: (terms: StreamTerms) => Promise<{ readonly first: T; readonly rest: FramesToCome }>,
): AsyncGenerator<T, void, undefined> {
  const call = callOf(context);
  const { first, rest } = await open({
    call,
    leftMs: () => context.timeoutMs(),
    header: (name) => context.requestHeader.get(name),
  });
  call.goesOn = rest;
  yield first;
}

interface Input {
  readonly kind: 'stdin' | 'pty';
  readonly input: Uint8Array;
}

const bytesIn = (given: ProcessInput | undefined): Input => {
  const input = given?.input;
  if (input?.case === undefined) throw badArgument('input: is required');
  return { kind: input.case, input: input.value };
};

const SIGNALS: Readonly<Partial<Record<Signal, 'KILL' | 'TERM'>>> = {
  [Signal.SIGKILL]: 'KILL',
  [Signal.SIGTERM]: 'TERM',
};

const orderOf = async (
  { process, pty, tag, stdin = true }: StartRequest,
  { call, leftMs }: StreamTerms,
  placeOf: (path: string) => Promise<{ readonly path: string }>,
): Promise<StartProcessRequest & { readonly pace: boolean }> => {
  if (!process?.cmd) throw invalidArgument('process.cmd', 'is required');
  const size = pty?.size ?? DEFAULT_SIZE;
  const cwd = process.cwd ? (await placeOf(process.cwd)).path : undefined;
  const { env } = check(ProcessBody, {
    command: [process.cmd, ...process.args],
    cwd,
    env: process.envs,
    stdin,
    ...(pty ? { tty: true, cols: size.cols, rows: size.rows } : {}),
    tag,
  });
  const timeoutMs = leftMs();
  call.sandbox.signal.throwIfAborted();
  if (timeoutMs !== undefined && timeoutMs <= 0) throw overTime();
  return {
    argv: [process.cmd, ...process.args],
    cwd,
    env,
    stdin,
    tty: pty ? { cols: size.cols, rows: size.rows } : undefined,
    tag,
    pace: true,
    timeoutMs: timeoutMs === undefined ? undefined : Math.max(1, Math.ceil(timeoutMs)),
  };
};

const meantBy = (selector: ProcessSelector | undefined): ((fact: ProcessFact) => boolean) => {
  const { case: kind, value } = selector?.selector ?? {};
  if (kind === undefined) throw badArgument('process: is required');
  return kind === 'tag' ? ({ tag }) => tag === value : ({ pid }) => pid !== 0 && pid === value;
};

const named = (selector: ProcessSelector | undefined): string => {
  const { case: kind, value } = selector?.selector ?? {};
  return kind === 'tag' ? `with the tag ${JSON.stringify(value)}` : String(value);
};

const FIELD_BYTES = 128;

const bytesOf = ({ argv, tag = '' }: ProcessFact): number =>
  [...argv, tag].reduce((sum, text) => sum + 3 + jsonLength(Buffer.from(text)), FIELD_BYTES);

const infoOf = ({ argv: [cmd = '', ...args], pid, tag }: ProcessFact) => ({
  config: { cmd, args },
  pid,
  tag,
});

interface Followed {
  readonly fact: ProcessFact;
  streams: number;
}

/** Processes with streams open here, so that a keystroke needs no list of processes. */
class FollowedProcesses {
  readonly #all = new Map<string, Followed>();

  /** The returned function may be repeated. */
  add(sandboxId: string, fact: ProcessFact): () => void {
    const key = keyOf(sandboxId, fact.pid);
    const known = this.#all.get(key);
    // The pid of an ended process may be reused.
    const followed = known?.fact.processId === fact.processId ? known : { fact, streams: 0 };
    followed.streams += 1;
    this.#all.set(key, followed);
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      followed.streams -= 1;
      if (followed.streams === 0 && this.#all.get(key) === followed) this.#all.delete(key);
    };
  }

  /** Undefined without a stream open here. */
  get(sandboxId: string, pid: number): ProcessFact | undefined {
    return this.#all.get(keyOf(sandboxId, pid))?.fact;
  }
}

const keyOf = (sandboxId: string, pid: number): string => `${sandboxId} ${pid}`;
