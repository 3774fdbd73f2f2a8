import {
  InputClosed,
  ProcessEnded,
  ProcessesFull,
  ProcessGone,
  ProcessRefused,
  startThenRead,
  type OutputRequest,
  type ProcessDriver,
  type ProcessInput,
  type ProcessOrder,
  type StartedReading,
} from '../../../src/contracts/processes.ts';
import {
  LIVE_PROCESSES,
  type ProcessFact,
  type ProcessOutput,
  type ProcessSignal,
} from '../../../src/model/process.ts';

/**
 * Processes without programs: `echo`, `cat`, `sleep` (until a signal), `false`, and `flood`, which
 * is killed for memory. A shell's script is one such command; others are not found.
 */
export class FakeProcesses implements ProcessDriver {
  readonly provided = true;
  readonly #now: () => number;
  readonly #mustRun: (id: string) => void;
  readonly #all = new Map<string, Map<string, FakeProcess>>();
  #pid = 1;

  constructor({
    now = Date.now,
    mustRun = () => undefined,
  }: { readonly now?: () => number; readonly mustRun?: (id: string) => void } = {}) {
    this.#now = now;
    this.#mustRun = mustRun;
  }

  async start(id: string, order: ProcessOrder): Promise<ProcessFact> {
    this.#mustRun(id);
    const known = this.#all.get(id) ?? new Map<string, FakeProcess>();
    this.#all.set(id, known);
    const there = known.get(order.processId);
    if (there) return there.fact;
    if (order.cwd === '/no/such') throw new ProcessRefused('cwd', 'there is no such folder');
    if ([...known.values()].filter(({ isLive }) => isLive).length >= LIVE_PROCESSES)
      throw new ProcessesFull('sandbox', `the sandbox has ${LIVE_PROCESSES} processes`);
    this.#pid += 1;
    const made = new FakeProcess(order, this.#pid, this.#now);
    known.set(order.processId, made);
    return made.fact;
  }

  run(id: string, order: ProcessOrder, request: OutputRequest): Promise<StartedReading> {
    return startThenRead(this, id, { order, request });
  }

  async list(id: string): Promise<readonly ProcessFact[]> {
    this.#mustRun(id);
    return [...(this.#all.get(id)?.values() ?? [])].map(({ fact }) => fact).reverse();
  }

  async find(id: string, processId: string): Promise<ProcessFact | undefined> {
    this.#mustRun(id);
    return this.#all.get(id)?.get(processId)?.fact;
  }

  async *output(
    id: string,
    processId: string,
    request: OutputRequest & { readonly signal: AbortSignal },
  ): AsyncGenerator<ProcessOutput, void, undefined> {
    yield* this.#get(id, processId).read(request);
  }

  async write(id: string, processId: string, { bytes }: ProcessInput): Promise<void> {
    this.#get(id, processId).write(bytes);
  }

  async closeInput(id: string, processId: string): Promise<void> {
    this.#get(id, processId).closeInput();
  }

  async resize(id: string, processId: string): Promise<void> {
    if (!this.#get(id, processId).fact.tty) throw new ProcessRefused('tty', 'it has no terminal');
  }

  async signal(id: string, processId: string, name: ProcessSignal): Promise<void> {
    this.#get(id, processId).signal(name);
  }

  async remove(id: string, processId: string): Promise<void> {
    const found = this.#get(id, processId);
    if (found.isLive) found.signal('KILL');
    this.#all.get(id)?.delete(processId);
  }

  #get(id: string, processId: string): FakeProcess {
    this.#mustRun(id);
    const found = this.#all.get(id)?.get(processId);
    if (!found) throw new ProcessGone('there is no such process');
    return found;
  }
}

const ENDS: Readonly<Partial<Record<ProcessSignal, number>>> = { KILL: 137, TERM: 143, INT: 130 };

class FakeProcess {
  readonly #now: () => number;
  readonly #program: string;
  readonly #pieces: { readonly stream: 'stdout' | 'stderr'; readonly bytes: Buffer }[] = [];
  readonly #changed = new Set<() => void>();
  #inputOpen: boolean;
  #fact: ProcessFact;

  constructor(order: ProcessOrder, pid: number, now: () => number) {
    this.#now = now;
    this.#inputOpen = order.stdin || order.tty !== undefined;
    const { processId, tag } = order;
    this.#fact = {
      processId,
      pid,
      argv: order.argv,
      status: 'Running',
      startedAt: now(),
      ...(tag === undefined ? {} : { tag }),
      tty: order.tty !== undefined,
      stdin: this.#inputOpen,
    };
    const [program = '', ...args] =
      order.argv[0] === '/bin/sh' ? (order.argv[2] ?? '').split(' ') : order.argv;
    this.#program = program;
    this.#run(args);
  }

  get fact(): ProcessFact {
    return this.#fact;
  }

  get isLive(): boolean {
    return this.#fact.status === 'Running';
  }

  async *read({
    from,
    signal,
    positioned,
  }: OutputRequest & { readonly signal: AbortSignal }): AsyncGenerator<
    ProcessOutput,
    void,
    undefined
  > {
    const end = this.#pieces.length;
    let at = from === 'latest' ? end : Math.min(Number(from ?? 0) || 0, end);
    positioned?.();
    while (!signal.aborted) {
      const piece = this.#pieces[at];
      if (piece) {
        at += 1;
        yield { kind: 'bytes', ...piece, next: String(at) };
      } else if (!this.isLive) {
        yield { kind: 'end', fact: this.#fact, next: String(at) };
        return;
      } else await this.#change(signal);
    }
  }

  write(bytes: Buffer): void {
    if (!this.#inputOpen) throw new InputClosed('the process takes no input, or no more');
    if (this.#program === 'cat') this.#print('stdout', bytes);
  }

  closeInput(): void {
    if (!this.#inputOpen) throw new InputClosed('the process takes no input, or no more');
    this.#inputOpen = false;
    if (this.#program === 'cat') this.#end(0);
  }

  signal(name: ProcessSignal): void {
    if (!this.isLive) throw new ProcessEnded('the process has ended');
    const exitCode = ENDS[name];
    if (exitCode !== undefined) this.#end(exitCode, name);
  }

  #run(args: readonly string[]): void {
    if (this.#program === 'echo') {
      this.#print('stdout', Buffer.from(`${args.join(' ')}\n`));
      this.#end(0);
    } else if (this.#program === 'true' || this.#program === 'false')
      this.#end(this.#program === 'true' ? 0 : 1);
    else if (this.#program === 'flood') {
      this.#fact = { ...this.#fact, outOfMemory: true };
      this.#end(137, 'KILL');
    } else if (this.#program === 'cat' && !this.#inputOpen) this.#end(0);
    else if (this.#program !== 'cat' && this.#program !== 'sleep') {
      this.#print('stderr', Buffer.from(`${this.#program}: not found\n`));
      this.#end(127);
    }
  }

  #print(stream: 'stdout' | 'stderr', bytes: Buffer): void {
    this.#pieces.push({ stream, bytes });
    this.#tell();
  }

  #end(exitCode: number, signal?: string): void {
    this.#inputOpen = false;
    this.#fact = {
      ...this.#fact,
      status: 'Exited',
      exitCode,
      ...(signal === undefined ? {} : { signal }),
      endedAt: this.#now(),
    };
    this.#tell();
  }

  #tell(): void {
    for (const changed of this.#changed) changed();
    this.#changed.clear();
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#changed.add(resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}
