import type { Clock } from '../../contracts/clock.ts';
import {
  OutcomeUnknown,
  type ExecOutcome,
  type ExecRequest,
} from '../../contracts/sandbox-driver.ts';
import { ByteQueue } from '../../lib/streams/byte-queue.ts';
import { FRAME_KINDS, type Frame } from '../spawner/frames.ts';
import type { DaemonMessage, SpawnerMessage } from '../spawner/protocol.ts';

export class SpawnerLost extends OutcomeUnknown {
  override readonly name = 'SpawnerLost';
}

interface Running {
  /** When the spawner should have ended the command. */
  readonly dueAt: number;
  readonly stdout: ByteQueue;
  readonly stderr: ByteQueue;
  readonly gathered: (bytes: Buffer) => void;
  readonly cut: (why: unknown) => void;
  readonly settle: (outcome: ExecOutcome) => void;
  readonly fail: (error: Error) => void;
}

/** Past a command's deadline, which the spawner enforces itself. */
const EXEC_GRACE_MS = 15_000;
/** While the spawner is silent. */
const SILENT_GRACE_MS = 500;

export interface CommandLinkDeps {
  readonly clock: Clock;
  /** Never repeats. Throws if no spawner is connected. */
  readonly number: () => number;
  readonly send: (message: DaemonMessage) => void;
}

export class CommandLink {
  readonly #deps: CommandLinkDeps;
  readonly #running = new Map<number, Running>();

  constructor(deps: CommandLinkDeps) {
    this.#deps = deps;
  }

  exec(id: string, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome> {
    signal.throwIfAborted();
    const channel = this.#deps.number();
    const { argv, cwd, env, stdin, timeoutMs, outputLimit, gathered = () => {} } = request;
    return new Promise<ExecOutcome>((resolve, reject) => {
      const cut = (why: unknown): void => {
        end();
        this.#deps.send({ type: 'close', channel });
        reject(why);
      };
      const abort = (): void => {
        cut(signal.reason);
      };
      const dueAt = this.#deps.clock.now() + timeoutMs;
      const callOff = this.#deps.clock.at(dueAt + EXEC_GRACE_MS, () => {
        cut(new SpawnerLost('the spawner does not answer'));
      });
      const end = (): void => {
        callOff();
        signal.removeEventListener('abort', abort);
        this.#running.delete(channel);
      };
      signal.addEventListener('abort', abort, { once: true });
      this.#running.set(channel, {
        dueAt,
        stdout: new ByteQueue(),
        stderr: new ByteQueue(),
        gathered,
        cut,
        settle: (outcome) => {
          end();
          resolve(outcome);
        },
        fail: (error) => {
          end();
          reject(error);
        },
      });
      this.#deps.send({ type: 'exec', channel, id, argv, timeoutMs, outputLimit, cwd, env, stdin });
    });
  }

  /** The spawner, which enforces deadlines, is silent. */
  cutOverdue(): void {
    const overdue = this.#deps.clock.now() - SILENT_GRACE_MS;
    for (const { dueAt, cut } of [...this.#running.values()])
      if (dueAt <= overdue) cut(new SpawnerLost('the spawner does not answer'));
  }

  output({ kind, channel, payload }: Frame): void {
    const running = this.#running.get(channel);
    if (running) gather(running, kind, payload);
  }

  refused(channel: number, error: Error): void {
    this.#running.get(channel)?.fail(error);
  }

  exited(message: Extract<SpawnerMessage, { type: 'exited' }>): void {
    const { type: _exited, channel, ...end } = message;
    const running = this.#running.get(channel);
    const [stdout, stderr] = [running?.stdout.takeAll(), running?.stderr.takeAll()];
    if (stdout && stderr) running?.settle({ stdout, stderr, ...end });
  }

  lose(error: Error): void {
    for (const { fail } of [...this.#running.values()]) fail(error);
    this.#running.clear();
  }
}

const gather = (
  { stdout, stderr, gathered, cut }: Running,
  kind: Frame['kind'],
  payload: Buffer,
): void => {
  try {
    gathered(payload);
  } catch (error) {
    return cut(error);
  }
  (kind === FRAME_KINDS.errors ? stderr : stdout).push(payload);
};
